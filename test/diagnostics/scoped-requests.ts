/** Requests for every route of the table, with every mark in every place that takes a value: new routes join by themselves. */
import * as z from 'zod'
import { userStream } from '../../src/internal/contract/ingest.js'
import type { DiagnosticsRoute } from '../../src/internal/diagnostics/route.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { fillTemplate, paramNames } from '../../src/internal/http/match.js'
import { MARKS, userOf } from './scoped-world.js'

const forEach = (of: (mark: string) => string[]) => [...MARKS, 'missing'].flatMap(of)

const IDS: Record<string, string[]> = {
  user_id: forEach((mark) => [userOf(mark)]),
  client_id: forEach((mark) => [`client-${mark}-stays`]).concat('shared-stays', 'shared-left', 'silent'),
  connection_id: forEach((mark) => [`id-${mark}-1`, `id-${mark}-2`]),
  instance_id: forEach((mark) => [`instance-${mark}-shared-stays`, `instance-${mark}-silent`]),
  node_id: ['missing', 'here', 'node'],
  ended_reason: forEach((mark) => [`left_${mark}`]).concat('heartbeat_lost', 'new_instance'),
  correlation_id: forEach((mark) => [`id-${mark}-3`, `id-${mark}-6`, `ended-${mark}-shared-left`]),
  action: forEach((mark) => [`call-${mark}`]).concat('shared'),
  context_id: forEach((mark) => [`context-${mark}-0-worker`, `context-${mark}-1-user-owned`]),
  window_id: forEach((mark) => [`window-${mark}`]),
  task_id: forEach((mark) => [`task-${mark}`]).concat('task-shared'),
  scope_id: forEach((mark) => [`scope-${mark}`]),
  command_id: forEach((mark) => [`command-${mark}`]).concat('command-shared'),
  owner: forEach((mark) => [userOf(mark)]),
  site_id: forEach((mark) => [`site-${mark}-first`, `site-${mark}-second`]),
  // Behind two connections of each and what these have called for.
  session_id: forEach((mark) => Array.from({ length: 20 }, (_, n) => `id-${mark}-${n + 1}`)),
  stream: forEach((mark) => [userStream(userOf(mark), 'log'), `${userStream(userOf(mark))}/notes-${mark}`]),
}
/** Values that are searched for: an id of each kind, and beginnings of ids. */
IDS.q = forEach((mark) => [
  userOf(mark),
  userOf(mark).slice(0, 2),
  `id-${mark}-1`,
  `context-${mark}-0-worker`,
  `window-${mark}`,
  `command-${mark}`,
  `scope-${mark}`,
  `site-${mark}-first`,
  `ended-${mark}-shared-left`,
  `call-${mark}`,
  `own-${mark}`,
]).concat('shared', 'shared-stays', 'task-shared', 'command-shared', 'node')

IDS.reason = IDS.ended_reason as string[]
IDS.name_prefix = forEach((mark) => [`call-${mark}`, `own-${mark}`]).concat('shared', 'c')
IDS.user_id_prefix = forEach((mark) => [userOf(mark)]).concat('user/')
IDS.silent_for_ms = ['0', '60000']
IDS.from = ['0', '2026-01-02T03:04:05Z']
IDS.to = ['1', '2100-01-01T00:00:00Z']

/** Values for any other name: one of each kind and mark. */
const ANY = [...new Set(Object.values(IDS).flatMap(oneOfEach))]

function valuesOf(name: string, schema?: z.ZodType): string[] {
  let inner = schema
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) inner = inner.unwrap() as z.ZodType
  if (inner instanceof z.ZodEnum) return inner.options.map(String)
  if (inner instanceof z.ZodBoolean) return ['true', 'false']
  return IDS[name] ?? ANY
}

/** One of `values` for each mark, and those without one. */
function oneOfEach(values: readonly string[]): string[] {
  const markIn = (value: string) => [...MARKS, 'missing'].find((mark) => value.includes(mark))
  const seen = new Set<string>()
  return values.filter((value) => {
    const mark = markIn(value)
    if (mark === undefined) return true
    return !seen.has(mark) && seen.add(mark)
  })
}

type Values = Record<string, string>

/** Every combination of one value for each name. */
const combine = (names: [name: string, values: string[]][]): Values[] =>
  names.reduce<Values[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  )

function targetsOf({ path, query }: DiagnosticsRoute): string[] {
  const fields = Object.entries(query?.shape ?? {}) as [string, z.ZodType][]
  const isRequired = ([, schema]: [string, z.ZodType]) => !schema.safeParse(undefined).success
  const named = (of: typeof fields) => of.map(([name, schema]): [string, string[]] => [name, valuesOf(name, schema)])
  const required = combine(named(fields.filter(isRequired)))
  const optional = named(fields.filter((field) => !isRequired(field)))
  const users = (optional.find(([name]) => name === 'user_id')?.[1] ?? []).slice(0, 2)
  // Each filter alone, and combined with a visible user and one who is never visible.
  const filters = optional.flatMap(([name, values]) => {
    const alone = values.map((value): Values => ({ [name]: value }))
    return name === 'user_id'
      ? alone
      : [
          ...alone,
          ...combine([
            ['user_id', users],
            [name, oneOfEach(values)],
          ]),
        ]
  })
  return combine(paramNames(path).map((name) => [name, valuesOf(name)])).flatMap((params) => {
    const target = fillTemplate(path, (name) => encodeURIComponent(params[name] as string))
    return [{}, ...filters].flatMap((filter) =>
      required.map((values) => {
        const search = new URLSearchParams({ ...values, ...filter }).toString()
        return search === '' ? target : `${target}?${search}`
      }),
    )
  })
}

/** Every route with the targets that it is asked for. */
export const REQUESTS = ROUTES.map((route) => ({ path: route.path, route, targets: targetsOf(route) }))
