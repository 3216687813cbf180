/** What the tests of incidents share: every question that a router can be asked, and answers without clocks and costs. */

import type { Incident } from '../../src/incident/format.js'
import type { CapturedRouter } from '../../src/incident/source.js'
import type { FakeWorld } from '../../src/testing/kits.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, KEY, type RouterOptions } from '../diagnostics/subject.js'
import { createWorld } from '../diagnostics/world.js'

/** A router over the small world of the tests, in which the instances of calls are those of the connections. */
export function createOriginal(options: RouterOptions = {}, over: Partial<FakeWorld> = {}) {
  const world = { ...createWorld(), ...over }
  const instances = world.connections?.filter(({ status }) => status === 'connected') ?? []
  return createSubject({ inspectors: createFakeInspectors({ ...world, instances }), ...options })
}

export const HEADERS = { 'x-admin-key': KEY }

type Answer = { status: number; body: unknown }

export async function askRouter(
  router: CapturedRouter,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const base = /^https?:/.test(router.prefix) ? router.prefix : `http://localhost${router.prefix}`
  const response = await router.fetch(new Request(base + path, { headers }))
  return { status: response.status, body: await response.json() }
}

interface OpenApi {
  paths: Record<
    string,
    {
      get: {
        parameters?: { name?: string; in?: string; required?: boolean; schema?: { enum?: string[]; type?: string } }[]
      }
    }
  >
}

/** What a search is asked for: every id of the rows, what some begin with, and what none is. */
function searched(rows: readonly Record<string, unknown>[]): { q: string }[] {
  const ids = rows.flatMap((row) =>
    Object.entries(row).flatMap(([name, value]) =>
      /(?:_id|^owner|^name)$/.test(name) && typeof value === 'string' ? value : [],
    ),
  )
  return [...new Set([...ids, ...ids.map((id) => id.slice(0, 2)), 'nowhere'])].map((q) => ({ q }))
}

/** Every question about `incident`: all routes with each id that its rows have, and each filter with each value. */
export function questionsAbout(incident: Incident, { body }: Answer): string[] {
  const rows = incident.parts.flatMap(({ rows = [] }) => rows)
  const valuesOf = (name: string) =>
    [...new Set(rows.map((row) => row[name]).filter((value) => typeof value === 'string'))] as string[]
  const users = [...new Set([...valuesOf('user_id'), ...valuesOf('owner')])]
  const instants = ['connected_at', 'disconnected_at', 'started_at', 'ended_at'].flatMap(valuesOf)
  const known: Record<string, string[]> = { user_id: users, from: instants, to: instants }
  const questions: string[] = []
  for (const [path, { get }] of Object.entries((body as OpenApi).paths)) {
    if (path === '/openapi.json') continue
    const parameters = (get.parameters ?? []).filter(
      ({ name }) => name !== undefined && name !== 'limit' && name !== 'cursor',
    )
    const needed = parameters.filter((one) => one.required).map(({ name }) => name as string)
    const keys =
      needed.length === 0
        ? [{}]
        : needed.includes('q')
          ? searched(rows)
          : rows.flatMap((row) =>
              needed.every((name) => typeof row[name] === 'string')
                ? [Object.fromEntries(needed.map((name) => [name, row[name] as string]))]
                : [],
            )
    for (const key of keys.length > 0 ? keys : []) {
      const given = key as Record<string, string>
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given[name] as string))
      const query = new URLSearchParams(Object.entries(given).filter(([name]) => !path.includes(`{${name}}`)))
      questions.push(query.size > 0 ? `${filled}?${query}` : filled)
      for (const { name, required, schema } of parameters) {
        if (required || name === undefined || name === 'order') continue
        const values =
          schema?.enum ?? (schema?.type === 'boolean' ? ['true', 'false'] : (known[name] ?? valuesOf(name)))
        for (const value of values) questions.push(`${filled}?${new URLSearchParams([...query, [name, value]])}`)
      }
    }
  }
  return [...new Set(questions)]
}

const CLOCKS =
  /^(?:observed_at|checked_at|age_ms|oldest_age_ms|oldest_queued_age_ms|staleness_ms|duration_ms|last_seen_at|updated_at|examined)$/

/** An answer without what changes by the clock alone, and without what it cost. */
export function timeless(body: unknown): unknown {
  return JSON.parse(
    JSON.stringify(body, (name, value) =>
      CLOCKS.test(name) ||
      name === 'next_cursor' ||
      name === 'incident' ||
      /^\d+\.\d+\.\d+/.test(name === 'version' ? String(value) : '')
        ? undefined
        : value,
    ),
  )
}
