/** The tools for records of any family: a page of a list, and one by its id. */
import * as z from 'zod'
import { escapeHiddenWithin, MANY, nameList, ONE, safeNames } from '../answer.js'
import { defineTool, pathOf, requestOf } from './tool.js'

// The families available to agents, each with its routes.

interface AskedFamily {
  /** Its list. A parameter of the path is given as a filter. */
  readonly list: string
  /** One record by its id. */
  readonly one?: string
  /** The member with data sent through the relay: left out unless the host allows it. */
  readonly payload?: string
}

export const RECORD_FAMILIES = {
  actions: { list: '/actions' },
  browser_windows: { list: '/browser-windows', one: '/browser-windows/{window_id}' },
  calls: { list: '/rpc/pending', one: '/rpc/pending/{correlation_id}' },
  client_events: { list: '/connections/events' },
  commands: { list: '/delivery/commands' },
  connection_history: { list: '/connections/{connection_id}/history' },
  connections: { list: '/connections', one: '/connections/{connection_id}' },
  contexts: { list: '/contexts', one: '/contexts/{context_id}' },
  ended_calls: { list: '/rpc/ended', one: '/rpc/ended/{correlation_id}' },
  idle_workers: { list: '/workers/available' },
  mailboxes: { list: '/delivery/mailboxes' },
  messages: { list: '/history/messages', payload: 'payload' },
  nodes: { list: '/delivery/nodes' },
  sessions: { list: '/sessions', one: '/sessions/{session_id}' },
  sites: { list: '/sites', one: '/sites/{site_id}' },
  streams: { list: '/history/streams' },
  subscriptions: { list: '/subscriptions' },
  task_workers: { list: '/workers/tasks/{task_id}' },
  tenants: { list: '/delivery/tenants' },
  users: { list: '/users' },
} as const satisfies Record<string, AskedFamily>

export type FamilyName = keyof typeof RECORD_FAMILIES

const FAMILY_NAMES = Object.keys(RECORD_FAMILIES) as [FamilyName, ...FamilyName[]]

const familyOf = (name: FamilyName): AskedFamily => RECORD_FAMILIES[name]

/** Families whose records can be read by id. */
const SINGLE_FAMILIES = FAMILY_NAMES.filter((name) => 'one' in RECORD_FAMILIES[name]) as [FamilyName, ...FamilyName[]]

// Metadata of a router's page and notes about missing data, for every tool that shows one.

const LIMIT = 20
const LIMIT_MAX = 100

const PAGE_INPUT = {
  limit: z.int().min(1).max(LIMIT_MAX).default(LIMIT),
  cursor: z.string().optional().describe('next_cursor of the page before'),
}

type Page = Record<string, unknown>

/** A count with its noun. */
const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? '' : 's'}`

/** The records of a page; `null` if it is not a page. */
export function recordsOf({ items }: Page): Record<string, unknown>[] | null {
  const isRecord = (item: unknown) => item !== null && typeof item === 'object' && !Array.isArray(item)
  return Array.isArray(items) && items.every(isRecord) ? items : null
}

/** The cursor of a page, if it can be sent back. */
const cursorOf = ({ has_more, next_cursor }: Page): string | null =>
  has_more === true && typeof next_cursor === 'string' && /^[\w.~-]{1,1024}$/.test(next_cursor) ? next_cursor : null

/** Notes about an incomplete aggregate. */
export function sampleNotes({ completeness }: Page): string[] {
  const { complete, truncated_sources } = (completeness ?? {}) as Record<string, unknown>
  if (complete !== false) return []
  const sources = nameList(truncated_sources) || 'some source'
  return [`A sample: cut short in ${sources}. Missing records may exist; counts are lower bounds.`]
}

/** A note about records of the page that cannot be shown. */
export const omittedNotes = ({ omitted }: Page): string[] =>
  typeof omitted === 'number' ? [`${count(omitted, 'record')} of this range cannot be shown.`] : []

/** A note about kinds of findings that could not be detected here. */
export function blindNotes({ not_looked_for }: Page): string[] {
  const kinds = nameList(not_looked_for)
  return kinds === '' ? [] : [`No source here can show these kinds: ${kinds}.`]
}

/** Whether it is a sample of the newest records instead of a page, the oldest of them first. */
const isSampleOfNewest = ({ has_more }: Page): boolean => typeof has_more !== 'boolean'

/** Why a page is not all of its list. */
function pageNotes(page: Page, cursor: string | undefined): string[] {
  const { has_more } = page
  return [
    ...(cursor === undefined ? [] : ['The pages before this one are not here.']),
    ...(has_more === true ? ['More records follow this page.'] : []),
    ...(isSampleOfNewest(page) ? ['A sample: the newest ones. There may be older ones.'] : []),
    ...omittedNotes(page),
    ...sampleNotes(page),
  ]
}

/** Adds what a missing record does not prove. */
const missing = (problem: string, status: number | null): string =>
  // A missing route is not a missing record.
  status === 404 && problem.startsWith('404 not_found:')
    ? `${problem}. It does not exist now; it may have existed and been forgotten.`
    : problem

const without = (record: Record<string, unknown>, member: string) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== member))

/** A record schema silently drops this name, and a dropped filter would widen the result. */
const PROTO = '__proto__'

const FILTERS = z.preprocess(
  (given, check) => {
    if (given !== null && typeof given === 'object' && Object.hasOwn(given, PROTO))
      check.addIssue(`${PROTO} is no filter`)
    return given
  },
  z.record(z.string(), z.union([z.string(), z.boolean()])),
)

export const FIND_RECORDS = defineTool({
  name: 'find_records',
  description:
    'A page of records. filters are those of the family, e.g. user_id, client_id, status, state; a wrong one is answered with the right ones. messages need stream, connection_history connection_id, idle_workers user_id, task_workers task_id and user_id.',
  input: z.strictObject({
    family: z.enum(FAMILY_NAMES),
    filters: FILTERS.optional(),
    ...PAGE_INPUT,
  }),
  output: MANY,
  async run({ family, filters, limit, cursor }, { fetchRoute, payloads }) {
    const { list, payload } = familyOf(family)
    const given = Object.fromEntries(Object.entries(filters ?? {}).map(([name, value]) => [name, String(value)]))
    const path = pathOf(list, given)
    if (path === null) return { refused: `${family}: filters must name ${list.match(/\{\w+\}/g)?.join(', ')}` }
    const query = Object.entries(given).filter(([name]) => !list.includes(`{${name}}`))
    const paged = { limit: String(limit), ...(cursor === undefined ? {} : { cursor }) }
    // The router refuses duplicate parameters.
    const search = new URLSearchParams([...query, ...Object.entries(paged)])
    const { value, problem } = await fetchRoute(`${path}?${search}`)
    if (problem !== undefined) return { refused: problem }
    const records = recordsOf(value)
    if (records === null) return { refused: 'the response is not a list' }
    const isHeldBack = payload !== undefined && !payloads
    const notes = pageNotes(value, cursor)
    return {
      headline: (many) => `${family}: ${count(many, 'record')}.`,
      complete: notes.length === 0,
      notes: [...notes, ...(isHeldBack ? [`The host does not show ${payload}s: that member is left out.`] : [])],
      next_cursor: cursorOf(value),
      keep: isSampleOfNewest(value) ? 'last' : 'first',
      untrusted: isHeldBack ? records.map((record) => without(record, payload)) : records,
    }
  },
})

export const GET_RECORD = defineTool({
  name: 'get_record',
  description: 'One record by its id.',
  input: z.strictObject({ family: z.enum(SINGLE_FAMILIES), id: z.string() }),
  output: ONE,
  async run({ family, id }, { fetchRoute }) {
    const { one = '' } = familyOf(family)
    const result = await fetchRoute(pathOf(one.replace(/\{\w+\}/, '{id}'), { id }))
    if (result.problem !== undefined) return { refused: missing(result.problem, result.status) }
    return { headline: `${family}: one record.`, complete: true, notes: [], untrusted: result.value }
  },
})

export const SEARCH = defineTool({
  name: 'search',
  description:
    'Finds records of every family with this id, and users and actions that begin with it. route is where to read each hit.',
  input: z.strictObject({ q: z.string() }),
  output: MANY,
  async run(input, { fetchRoute }) {
    const { value, problem } = await fetchRoute(requestOf('/search', input))
    if (problem !== undefined) return { refused: problem }
    const hits = recordsOf({ items: value.hits })
    if (hits === null) return { refused: 'the response is not a list' }
    const [more, cut] = [nameList(value.more), nameList(value.cut)]
    const notes = [
      ...(more === '' ? [] : [`The first ones only of ${more}.`]),
      ...(cut === '' ? [] : [`Not searched to the end: ${cut}. There may be more.`]),
    ]
    return {
      headline: (many) => `${count(many, 'hit')}.`,
      complete: notes.length === 0,
      notes,
      next_cursor: null,
      untrusted: hits,
    }
  },
})

// The tool that lists findings with what they mean and do not mean.

/** Maximum characters of a kind's explanation, and maximum kinds: the router's own texts are shorter. */
const WORDS = 400
const KINDS = 12

/** Returns the meaning of each kind among `records` once. */
function explain(records: readonly Record<string, unknown>[]): string[] {
  const meanings = new Map<string, string>()
  for (const { kind, means, does_not_mean } of records)
    for (const name of safeNames([kind])) meanings.set(name, `${name}: ${means ?? ''} ${does_not_mean ?? ''}`)
  return [...meanings.values()].slice(0, KINDS).map((words) => escapeHiddenWithin(words, WORDS))
}

export const EXPLAIN_FINDINGS = defineTool({
  name: 'explain_findings',
  description: 'Contradictions between sources and overdue records, with evidence, meaning, and what it does not mean.',
  input: z.strictObject({ kind: z.string().optional(), ...PAGE_INPUT }),
  output: MANY.extend({ explanations: z.array(z.string()) }),
  async run({ kind, limit, cursor }, { fetchRoute }) {
    const query = {
      limit: String(limit),
      ...(kind === undefined ? {} : { kind }),
      ...(cursor === undefined ? {} : { cursor }),
    }
    const { value, problem } = await fetchRoute(requestOf('/findings', query))
    if (problem !== undefined) return { refused: problem }
    const records = recordsOf(value)
    if (records === null) return { refused: 'the response is not a list' }
    const notes = pageNotes(value, cursor)
    return {
      headline: (many) => (many > 0 ? `${count(many, 'finding')}.` : 'No finding here, which is not: all is well.'),
      complete: notes.length === 0,
      notes: [...notes, ...blindNotes(value)],
      explanations: explain(records),
      next_cursor: cursorOf(value),
      untrusted: records.map(({ means, does_not_mean, ...record }) => record),
    }
  },
})

// The tools about one user and about one command: all that is known of either.

export const USER_SUMMARY = defineTool({
  name: 'user_summary',
  description: 'What all sources together know of one user. null is unknown, not 0.',
  input: z.strictObject({ user_id: z.string() }),
  output: ONE,
  async run(input, { fetchRoute }) {
    const result = await fetchRoute(pathOf('/users/{user_id}/summary', input))
    if (result.problem !== undefined) return { refused: missing(result.problem, result.status) }
    const notes = sampleNotes(result.value)
    return { headline: 'One user.', complete: notes.length === 0, notes, untrusted: result.value }
  },
})

const COMMAND_KEY = z.strictObject({ user_id: z.string(), client_id: z.string(), command_id: z.string() })

export const EXPLAIN_COMMAND = defineTool({
  name: 'explain_command',
  description:
    'Why a command has not arrived: its links, each with evidence. `verdict` is the first link that is not true.',
  input: COMMAND_KEY,
  output: ONE,
  async run(input, { fetchRoute }) {
    const result = await fetchRoute(requestOf('/delivery/why', input))
    if (result.problem !== undefined) return { refused: missing(result.problem, result.status) }
    const notes = sampleNotes(result.value)
    return { headline: 'One command, link by link.', complete: notes.length === 0, notes, untrusted: result.value }
  },
})

export const COMMAND_EVIDENCE = defineTool({
  name: 'command_evidence',
  description:
    'The record of one command: admission, attempts, acknowledgement, end. Never proof of its effect. If user_id or client_id is null, use its scope_id instead.',
  input: COMMAND_KEY,
  output: ONE,
  async run(input, { fetchRoute }) {
    const result = await fetchRoute(requestOf('/delivery/status', input))
    if (result.problem !== undefined) return { refused: missing(result.problem, result.status) }
    const notes = ['No member proves that an effect happened or did not.']
    return { headline: 'The evidence about one command.', complete: true, notes, untrusted: result.value }
  },
})
