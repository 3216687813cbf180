/** The overview tool: responding sources, totals and findings. */
import * as z from 'zod'
import { ANSWER_SCHEMA, nameList, safeNames } from '../answer.js'
import type { RouteResult } from '../source.js'
import { blindNotes, omittedNotes, recordsOf, sampleNotes } from './records.js'
import { defineTool } from './tool.js'

type Json = Record<string, unknown>

const NODES = 20

/** `record` with these members alone. */
const only = (record: Json, ...names: string[]) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => names.includes(name)))

/** Why a list is incomplete. */
const partNotes = (what: string, value: Json) => [
  ...(value.has_more === true ? [`${what}: the first ones only, more follow.`] : []),
  ...[...omittedNotes(value), ...sampleNotes(value)].map((note) => `${what}: ${note}`),
]

/** A part of the overview: its route, what is shown of it, and why it is incomplete. */
interface Part {
  readonly route: string
  read(value: Json): unknown
  notes?(value: Json): string[]
  /** Notes about a complete part. */
  remarks?(value: Json): string[]
}

const PARTS: Record<string, Part> = {
  router: { route: '/', read: (value) => only(value, 'deployment_id', 'mode', 'version') },
  sources: {
    route: '/sources',
    read: (value) => recordsOf(value)?.map((row) => only(row, 'source', 'answered', 'code', 'warnings')) ?? null,
    notes: (value) => {
      const silent = (recordsOf(value) ?? []).filter(({ answered }) => answered !== true)
      return silent.length === 0 ? [] : [`Unknown: ${nameList(silent.map(({ source }) => source))} did not respond.`]
    },
  },
  connections: {
    route: '/connections/count',
    read: (value) => only(value, 'total', 'by_status', 'by_client_type', 'of_silent_nodes'),
    notes: (value) => partNotes('connections', value),
  },
  calls: { route: '/rpc/summary', read: (value) => value },
  delivery: {
    route: '/delivery/summary',
    read: (value) => value,
    remarks: ({ sample_size, tracked_commands }) =>
      Number(sample_size) < Number(tracked_commands)
        ? [`delivery: its oldest_… are those of a sample of ${Number(sample_size)}, not of all tracked commands.`]
        : [],
  },
  nodes: {
    route: `/delivery/nodes?limit=${NODES}`,
    read: (value) =>
      recordsOf(value)?.map((row) =>
        only(row, 'node_id', 'stale', 'staleness_ms', 'mailbox_listener_alive', 'reconciliation_loop_alive'),
      ) ?? null,
    notes: (value) => partNotes('nodes', value),
  },
  findings: {
    route: '/findings/summary',
    read: ({ kinds }) => {
      const counts: Record<string, unknown> = {}
      for (const { kind, count, oldest_since } of recordsOf({ items: kinds }) ?? [])
        if (count !== 0) for (const name of safeNames([kind])) counts[name] = { count, oldest_since }
      return counts
    },
    notes: (value) => {
      const atLeast = (recordsOf({ items: value.kinds }) ?? []).filter(({ exact }) => exact !== true)
      return [
        ...(atLeast.length === 0
          ? []
          : [`findings: at least this many of ${nameList(atLeast.map(({ kind }) => kind))}.`]),
        ...sampleNotes(value).map((note) => `findings: ${note}`),
      ]
    },
    remarks: (value) => blindNotes(value).map((note) => `findings: ${note}`),
  },
}

type FailedRoute = Extract<RouteResult, { problem: string }>

/** Whether the deployment has no such part, which makes what it has no less complete. */
const isAbsent = ({ status }: FailedRoute) => status === 501

export const RELAY_OVERVIEW = defineTool({
  name: 'relay_overview',
  description:
    'Call this first: responding sources, connections, calls, delivery, nodes, findings by kind. null is unknown, not 0.',
  input: z.strictObject({}),
  output: ANSWER_SCHEMA.extend({
    // Parts that were cut are absent.
    untrusted: z.object(Object.fromEntries(Object.keys(PARTS).map((name) => [name, z.unknown()]))).partial(),
  }),
  async run(_input, { fetchRoute }) {
    const result = await Promise.all(
      Object.entries(PARTS).map(async ([name, part]) => ({ name, part, answer: await fetchRoute(part.route) })),
    )
    // The index needs no source: without it the router itself does not respond.
    const [first] = result
    if (first?.answer.problem !== undefined) return { refused: first.answer.problem }
    const notes = result.flatMap(({ name, part, answer }) => {
      if (answer.problem === undefined) return part.notes?.(answer.value) ?? []
      return isAbsent(answer) ? [] : [`${name}: unknown: ${answer.problem}.`]
    })
    const remarks = result.flatMap(({ name, part, answer }) => {
      if (answer.problem === undefined) return part.remarks?.(answer.value) ?? []
      return isAbsent(answer) ? [`${name}: not part of this deployment.`] : []
    })
    return {
      headline: 'The relay as it is now.',
      complete: notes.length === 0,
      notes: [...notes, ...remarks],
      untrusted: Object.fromEntries(
        result.map(({ name, part, answer }) => [name, answer.problem === undefined ? part.read(answer.value) : null]),
      ),
    }
  },
})
