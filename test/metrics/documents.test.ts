/** Holds what is written about metrics against their table: the document and the dashboard. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { noopAuth } from '../../src/internal/http/auth.js'
import { FindingKind } from '../../src/internal/views/findings/finding.js'
import { createMetrics } from '../../src/metrics/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createWorld } from '../diagnostics/world.js'
import { ROOT } from '../repository/imports.js'

const textOf = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')
const metrics = createMetrics({ inspectors: createFakeInspectors(createWorld()), auth: noopAuth() })
const SUFFIX = { gauge: '', counter: '_total', histogram: '', info: '_info' }
const series = new Map(metrics.families.map(({ name, type, labels }) => [name + SUFFIX[type], labels]))

describe('the table of families', () => {
  it.each(metrics.families)('$name is named as both formats want it', ({ name, type, unit, help, labels }) => {
    expect(name).toMatch(/^relayscope_[a-z_]+[a-z]$/)
    expect(name).not.toMatch(/_(total|created|count|sum|bucket|info|gauge|counter|ms|milliseconds)$/)
    expect(name.endsWith('_seconds')).toBe(unit === 'seconds')
    if (type === 'counter') expect(unit).toBeNull()
    expect(help).toMatch(/^[A-Z].*\.$/)
    for (const label of labels) expect(label).toMatch(/^[a-z][a-z_]*$/)
  })

  it('has each name once, whatever a format puts behind it', () => {
    expect(series.size).toBe(metrics.families.length)
  })
})

describe('the series of docs/metrics.md', () => {
  const rows = [...textOf('docs/metrics.md').matchAll(/^\| `(relayscope_\w+)` \| (.*?) ?\| (.+?) \| /gm)]

  it('has every series in its order, with its labels and what it proves', () => {
    expect(rows.map(([, name]) => name)).toEqual([...series.keys()])
    expect(rows.map(([, , labels]) => [...(labels as string).matchAll(/`(\w+)`/g)].map(([, label]) => label))).toEqual([
      ...series.values(),
    ])
    for (const [, name, , proves] of rows) expect(proves?.length, name).toBeGreaterThan(10)
  })
})

describe('docs/alerts.yml', () => {
  it('names only series that there are, and labels and findings that they have', () => {
    const text = textOf('docs/alerts.yml')
    const rules = [...text.matchAll(/expr: (.+)/g)].map(([, expr]) => expr as string)
    expect(rules.length).toBeGreaterThan(5)
    for (const expr of rules)
      for (const [, name = '', labels = ''] of expr.matchAll(/(relayscope_\w+)(?:\{(\w+)=)?/g)) {
        expect([...series.keys()], expr).toContain(name)
        if (labels) expect(series.get(name), expr).toContain(labels)
      }
    const kinds = [...text.matchAll(/\/findings\?kind=(\w+)/g)].map(([, kind]) => kind)
    expect(kinds.length).toBeGreaterThan(1)
    for (const kind of kinds) expect(FindingKind.options).toContain(kind)
    expect(FindingKind.options).toContain(/\/findings\?kind=(\w+)/.exec(textOf('docs/metrics.md'))?.[1])
  })
})

/** The series of a query: a histogram has those of its parts. */
const known = (name: string) => series.get(name) ?? series.get(name.replace(/_bucket$/, ''))

describe.each(['docs/grafana.json', 'docs/grafana-calls.json'])('%s', (path) => {
  const dashboard = JSON.parse(textOf(path)) as {
    panels: { id: number; title: string; description: string; targets: { expr: string }[] }[]
    templating: unknown
  }

  it('names only series that there are, and labels that they have', () => {
    const named = [...JSON.stringify([dashboard.panels, dashboard.templating]).matchAll(/\brelayscope_\w+/g)]
    expect(named.length).toBeGreaterThan(10)
    expect(named.map(([name]) => name).filter((name) => !known(name))).toEqual([])
    for (const { title, targets } of dashboard.panels)
      for (const { expr, legendFormat = '' } of targets as { expr: string; legendFormat?: string }[]) {
        const labels = [...expr.matchAll(/relayscope_\w+/g)].flatMap(([name]) => known(name) ?? [])
        const used = [...`${legendFormat} ${expr}`.matchAll(/\{\{(\w+)\}\}|by \(([\w, ]+)\)/g)].flatMap(([, a, b]) =>
          (a ?? (b as string)).split(', '),
        )
        for (const label of used) expect(labels, title).toContain(label)
      }
  })

  it('asks counters and histograms for their rate, and nothing else', () => {
    for (const { targets } of dashboard.panels)
      for (const { expr } of targets) expect(/rate\(/.test(expr), expr).toBe(/_(?:total|bucket)\{/.test(expr))
  })

  it('has each panel once', () => {
    const ids = dashboard.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
