/** Answers behind an unchanged tag over the composition in memory. */
import { expect, it } from 'vitest'
import * as z from 'zod'
import { grow } from '../../src/internal/contract/ages.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { isCompared } from '../../src/internal/http/read-route.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { holdAges } from '../contract/ages.js'
import { createClock } from '../contract/clock.js'

it('reads every answer as it is while a node and a client are silent', async () => {
  const { now, advance } = createClock()
  const facilities = createMemoryFacilities({ now, nodeId: 'n' })
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), now, onError: null })
  await holdAges(facilities, router, advance, () => facilities.dispatcher.close())
  await facilities.close()
})

type Schema = { properties?: Record<string, Schema>; items?: Schema; anyOf?: Schema[]; allOf?: Schema[] }

/** The paths of all fields whose name matches, `[]` for the elements of a list. */
function fieldsIn({ properties = {}, items, anyOf = [], allOf = [] }: Schema, name: RegExp): string[] {
  return [
    ...Object.entries(properties).flatMap(([key, schema]) => [
      ...(name.test(key) ? [key] : []),
      ...fieldsIn(schema, name).map((rest) => `${key}.${rest}`),
    ]),
    ...(items ? fieldsIn(items, name).map((rest) => `[].${rest}`) : []),
    ...[...anyOf, ...allOf].flatMap((schema) => fieldsIn(schema, name)),
  ]
}

const valueAt = (path: string[], leaf: unknown): unknown => {
  const [first, ...rest] = path
  if (first === undefined) return leaf
  return first === '[]' ? [valueAt(rest, leaf)] : { [first]: valueAt(rest, leaf) }
}

it('ages each field of a tagged answer that time alone changes', () => {
  const tagged = ROUTES.filter(isCompared)
  const fields = tagged.flatMap(({ path, response }) => {
    const schema = z.toJSONSchema(response, { io: 'output', unrepresentable: 'any', reused: 'inline' }) as Schema
    return fieldsIn(schema, /^observed_at$|(?:^|_)age_ms$|staleness_ms$/).map((field) => ({ path, field }))
  })
  expect(fields).toEqual(
    expect.arrayContaining([
      { path: '/delivery/nodes', field: 'items.[].staleness_ms' },
      { path: '/rpc/pending', field: 'items.[].age_ms' },
      { path: '/findings', field: 'items.[].evidence.[].observed_at' },
      { path: '/delivery/churn', field: 'observed_at' },
    ]),
  )
  for (const { path, field } of fields) {
    const [was, is] = field.endsWith('_at') ? ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z'] : [5, 1_005]
    const steps = field.split('.')
    const answer = valueAt(steps, was)
    grow(answer, 1_000)
    expect([path, field, answer]).toEqual([path, field, valueAt(steps, is)])
  }
})

it('leaves what clients say, unknown ages and other records as they are', () => {
  const message = { payload: { age_ms: 1, items: [{ age_ms: 1 }] }, observed_at: 'never' }
  const answer = { items: [message, { age_ms: null }], has_more: false }
  const before = structuredClone(answer)
  grow(answer, 1_000)
  expect(answer).toEqual(before)
})
