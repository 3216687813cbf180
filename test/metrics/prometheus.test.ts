/** A real Prometheus that scrapes the live host and is asked for what it has; `promtool` on what both compositions say. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { end, type LiveHost, startLiveHost } from '../end-to-end/live-host-process.js'
import { ROOT } from '../repository/imports.js'
import { parseText, seriesValue } from './parse.js'
import { describePrometheus, lint, startPrometheus } from './programs.js'

const OPEN = 'application/openmetrics-text;version=1.0.0'

describePrometheus('a Prometheus that scrapes the live host', () => {
  let host: LiveHost
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>

  beforeAll(async () => {
    host = await startLiveHost()
    prometheus = await startPrometheus(host.url, host.key)
  })
  afterAll(async () => {
    await prometheus?.stop()
    if (host) await end(host)
  })

  const scrape = async (accept: string) =>
    (await fetch(`${host.url}/metrics`, { headers: { accept, authorization: `Bearer ${host.key}` } })).text()

  it('has nothing for promtool to say', async () => {
    const text = await scrape('text/plain')
    expect(lint(text)).toEqual({ status: 0, said: '' })
    // It does look: a counter without its ending is found.
    expect(lint('# HELP a A.\n# TYPE a counter\na 1\n').status).not.toBe(0)
  })

  it('is scraped with the key as a bearer token, and without a fault', async () => {
    const [up] = await prometheus.queried('up{job="relayscope"} == 1')
    expect(up?.value[1]).toBe('1')
    const { activeTargets } = (await prometheus.api<{ activeTargets: { lastError: string; health: string }[] }>(
      '/targets',
    )) as { activeTargets: { lastError: string; health: string }[] }
    expect(activeTargets).toMatchObject([{ health: 'up', lastError: '' }])
  })

  it('answers every series that a scrape has, with its labels and its type', async () => {
    await prometheus.queried('relayscope_source_up')
    const families = parseText(await scrape(OPEN), true)
    // Series appear during the first seconds of the host; all of the current ones are there after one more scrape.
    const all = [...families.values()].flatMap(({ samples }) => samples)
    expect(all.length).toBeGreaterThan(60)
    for (const { name, labels } of all) {
      const matchers = Object.entries(labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`)
      const found = await prometheus.queried(`${name}{${matchers.join(',')}}`)
      expect(found.length, name).toBe(1)
    }
    const metadata = (await prometheus.api<Record<string, { type: string; help: string; unit: string }[]>>(
      '/metadata',
    )) as Record<string, { type: string; help: string; unit: string }[]>
    // Prometheus keeps what a counter is under the name of its sample.
    for (const [name, { type, help, unit = '' }] of families)
      expect(metadata[name] ?? metadata[`${name}_total`], name).toMatchObject([{ type, help, unit }])
  })

  it('sees a counter rise as commands end', async () => {
    const text = await scrape(OPEN)
    const before = seriesValue(parseText(text, true), 'relayscope_rpc_calls_opened_total') as number
    const [risen] = await prometheus.queried(`relayscope_rpc_calls_opened_total > ${before}`)
    expect(Number(risen?.value[1])).toBeGreaterThan(before)
  })

  it.each(['grafana', 'grafana-calls'])('understands every question of docs/%s.json', async (name) => {
    const { panels } = JSON.parse(readFileSync(`${ROOT}/docs/${name}.json`, 'utf8')) as {
      panels: { title: string; targets: { expr: string }[] }[]
    }
    for (const { title, targets } of panels)
      for (const { expr } of targets) {
        const filled = expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.+')
        expect(await prometheus.api(`/query?query=${encodeURIComponent(filled)}`), title).toBeDefined()
      }
  })

  it('accepts the alert rules', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', `${ROOT}/docs/alerts.yml`], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain('8 rules found')
  })
})
