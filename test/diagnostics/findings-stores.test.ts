/** What `/findings` and `/sources` report about the settings of a store. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { SourceRow } from '../../src/internal/diagnostics/sources.js'
import { Refusal } from '../../src/internal/refusal.js'
import type { Finding } from '../../src/internal/views/findings/finding.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { desk } from './finding-worlds.js'
import { createSubject, get } from './subject.js'

const world = (): Inspectors => createFakeInspectors({ connections: [desk], calls: [], delivery: {} })
const warn = (inspectors: Inspectors, name: keyof Inspectors, warnings: () => Promise<unknown>) =>
  Object.assign(inspectors[name] as object, { warnings })
const evicts = (detail: string) => async () => [{ code: 'store_evicts', detail }]
const failing = async () => {
  throw new Refusal('unavailable')
}

describe('a store that evicts keys', () => {
  const found = async (inspectors: Inspectors) => {
    const { body } = await get(createSubject({ inspectors }), '/findings?kind=store_evicts')
    return body.items.map(({ subject, evidence }: Finding) => [subject.source, evidence[0]?.fields.detail])
  }

  it('is found once for the sources that share it, and for each other one', async () => {
    const inspectors = world()
    warn(inspectors, 'registry', evicts('lru'))
    warn(inspectors, 'rpc', evicts('lru'))
    warn(inspectors, 'delivery', evicts('ttl'))
    expect(await found(inspectors)).toEqual([
      ['registry', 'lru'],
      ['delivery', 'ttl'],
    ])
  })

  it.each<[string, () => Promise<unknown>]>([
    ['another warning', async () => [{ code: 'store_not_persistent', detail: 'd' }]],
    ['settings that are unknown', async () => null],
  ])('is not found for %s', async (_name, warnings) => {
    const inspectors = world()
    warn(inspectors, 'registry', warnings)
    expect(await found(inspectors)).toEqual([])
  })

  it('is unknown if the only source that could know it fails', async () => {
    const inspectors = world()
    warn(inspectors, 'registry', failing)
    expect((await get(createSubject({ inspectors }), '/findings?kind=store_evicts')).status).toBe(503)
    const { status, body } = await get(createSubject({ inspectors }), '/findings')
    expect([status, body.completeness.complete]).toEqual([200, false])
  })
})

it('/sources shows what a source knows of its store, and null where it does not', async () => {
  const inspectors = world()
  const reported: unknown[] = []
  warn(inspectors, 'registry', evicts('lru'))
  warn(inspectors, 'rpc', failing)
  warn(inspectors, 'delivery', async () => [{ code: 'odd', detail: 'd' }])
  const router = createSubject({ inspectors, onError: (error) => void reported.push(error) })
  const { items } = (await get(router, '/sources')).body as { items: SourceRow[] }
  const warnings = Object.fromEntries(items.map((row) => [row.source, [row.answered, row.warnings]]))
  expect(warnings.registry).toEqual([true, [{ code: 'store_evicts', detail: 'lru' }]])
  for (const source of ['rpc', 'delivery']) expect(warnings[source]).toEqual([true, null])
  expect(reported).toHaveLength(2)
})
