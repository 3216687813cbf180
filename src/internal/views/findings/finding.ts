/** A finding: two observations that disagree, or one past its own deadline, and what that proves. */
import * as z from 'zod'
import { Completeness, SourceName } from '../../contract/capabilities.js'
import { digest64 } from '../../contract/digest.js'
import { Timestamp, utf8Length } from '../../contract/ids.js'
import { type JsonObject, JsonRecord } from '../../contract/json.js'
import { ID_BYTES } from '../../contract/limits.js'
import { pageSchema } from '../../contract/page.js'

/** The kind of a finding. */
export const FindingKind = z
  .enum([
    'command_overdue',
    'command_waiting_though_listened',
    'command_waiting_for_nobody',
    'command_not_acknowledged',
    'client_not_acknowledging',
    'reservation_without_command',
    'silent_node_holds',
    'session_without_connector',
    'call_overdue',
    'call_to_superseded_instance',
    'call_not_answered',
    'client_not_answering',
    'calls_lost_with_connection',
    'worker_of_disconnected_client',
    'worker_lost_with_task',
    'context_of_disconnected_client',
    'window_of_disconnected_client',
    'counts_disagree',
    'store_evicts',
  ])
  .describe('The kind of a finding: which sources disagree, or what is past its own deadline.')
export type FindingKind = z.infer<typeof FindingKind>

/** What each kind proves and does not prove. */
const WORDS: Record<FindingKind, readonly [means: string, doesNotMean: string]> = {
  command_overdue: [
    'The deadline of the command has passed and no end is recorded, although a loop has run since or no node is alive.',
    'It does not prove whether the command had an effect: no end was recorded.',
  ],
  command_waiting_though_listened: [
    'The client is connected, a living node has run its loop since the command was admitted, and no attempt was made.',
    'It does not mean that the command is lost or refused: it is delivered if the client attaches before the deadline.',
  ],
  command_waiting_for_nobody: [
    'The command is open, not acknowledged, and its client is not connected.',
    'It does not mean that it is lost: it is delivered if the client attaches before the deadline. Nor, if there were attempts, that none reached the client.',
  ],
  command_not_acknowledged: [
    'The client is connected, at least one delivery attempt was rejected or timed out, and the client has not acknowledged it.',
    'It does not mean that the client did not receive or run it: the acknowledgement may have been lost.',
  ],
  client_not_acknowledging: [
    'The client is connected, the latest of its attempted commands to end, cancelled ones aside, was not acknowledged in time, and it has acknowledged none since.',
    'It does not mean that the client ran none of its commands: acknowledgements may have been lost. Nor that it fails now: it may have had no command since.',
  ],
  reservation_without_command: [
    'The scope holds a reservation whose deadline has passed, and no command of the scope is past its deadline.',
    'It does not mean that the scope is full: compare its reservations with its capacity.',
  ],
  silent_node_holds: [
    'The node has stopped reporting, and connections, consumers or active deliveries are still recorded as its own.',
    'It does not mean that these clients are disconnected: they may have moved to another node, or the node may only be slow.',
  ],
  session_without_connector: [
    'The session is active and the client that handles its actions is not connected.',
    'It does not mean that viewers get no events: publishing needs no connector.',
  ],
  call_overdue: [
    'The call is past its deadline and has not been removed: the node that opened it is silent.',
    'It does not mean that the action was not run: its caller may have stopped waiting before the reply.',
  ],
  call_to_superseded_instance: [
    'The call was sent to an instance, and another instance of the client has taken over since.',
    'It does not mean that the call fails: that instance may still reply.',
  ],
  call_not_answered: [
    'An observed call has been open for a second at least, and the same connection has answered a call that was sent later.',
    'It does not mean that the call was lost or ignored: it may take longer than the later one.',
  ],
  client_not_answering: [
    'The client is connected, and it has answered no call since an observed one was sent that has been open for a second at least.',
    'It does not mean that the client did not receive the call: it may work on it. Nor that its connection works: a client that was suspended counts as connected until its heartbeat timeout.',
  ],
  calls_lost_with_connection: [
    'Observed calls had no reply when their connection ended, in the last hour, for the reason shown.',
    'It does not mean that they had no effect: the reply may have been on its way. Nor that the connection failed: a client may have closed it.',
  ],
  worker_of_disconnected_client: [
    'The worker carries a task and its client is not connected.',
    'It does not mean that the task failed, nor that its effect did not happen.',
  ],
  worker_lost_with_task: [
    'The worker crashed, or its browser ended or disconnected, while it carried a task, and the task was not released since.',
    'It does not mean that the task failed, nor that no other worker took it over: the registry knows what is assigned, not what became of it.',
  ],
  context_of_disconnected_client: [
    'The context is active and its client is not connected.',
    'It does not mean that the tab or flow is closed: it was last reported at the time shown.',
  ],
  window_of_disconnected_client: [
    'The window is open and its client is not connected.',
    'It does not mean that the window is closed: it was last reported at the time shown.',
  ],
  counts_disagree: [
    'Two sources count the same entries and disagreed in two consecutive readings, while neither changed.',
    'It does not say which number is right.',
  ],
  store_evicts: [
    'The store of the source deletes keys when it is full: records can be missing in answers that say they are complete.',
    'It does not mean that a record of this deployment is missing: the store counts the evicted keys of all applications.',
  ],
}

/** One observation that a finding rests on. */
export const Evidence = z
  .object({
    source: SourceName.describe('The source that reported it.'),
    route: z.string().describe('The request that shows it, below the prefix.'),
    fields: JsonRecord.describe('The fields that matter for the finding, with the values read.'),
    observed_at: Timestamp.describe('When it was read.'),
  })
  .describe('One observation that a finding rests on.')
export type Evidence = z.infer<typeof Evidence>

/** One finding. It rests on its `evidence` alone; nothing is measured against a threshold of the library. */
export const Finding = z
  .object({
    finding_id: z.string().describe('Stable id: the same finding has the same id in every response.'),
    kind: FindingKind.describe('Which sources disagree, or what is past its own deadline.'),
    subject: z.record(z.string(), z.string()).describe('The ids that the finding is about, by field name.'),
    evidence: z.array(Evidence).min(1).describe('All observations that the finding is based on.'),
    since: Timestamp.nullable().describe(
      'The time that it is counted from, such as the deadline of an overdue record; `null` if no source has it.',
    ),
    means: z.string().describe('What a finding of this kind proves.'),
    does_not_mean: z.string().describe('What it does not prove.'),
    help: z.string().describe('Where the documentation of the package explains this kind.'),
  })
  .describe('Two observations that disagree, or one past its own deadline.')
export type Finding = z.infer<typeof Finding>

/** Filters of `/findings`. */
export const FindingFilter = z.object({ kind: FindingKind.optional().describe('Only findings of this kind.') })
export type FindingFilter = z.infer<typeof FindingFilter>

/** A page of findings, kind by kind. */
export const FindingPage = pageSchema(Finding)
  .extend({
    completeness: Completeness.describe('How far the sources were read for this page.'),
    not_looked_for: z.array(FindingKind).describe('Requested kinds that no inspector of this deployment can detect.'),
  })
  .describe('A page of findings, kind by kind. A page with a next cursor may be shorter than its limit, or empty.')
export type FindingPage = z.infer<typeof FindingPage>

/** Maximum number of nodes that a group of findings names. */
export const NODES_SHOWN = 16

/** All findings of one kind. */
export const FindingGroup = z
  .object({
    kind: FindingKind.describe('Which sources disagree, or what is past its own deadline.'),
    count: z.int().min(0).nullable().describe('How many there are; `null` if a source of this kind failed.'),
    exact: z.boolean().describe('Whether `count` is exact; if not, there are at least that many.'),
    oldest_since: Timestamp.nullable().describe('`since` of the oldest that was counted; `null` if none has one.'),
    nodes: z
      .array(z.string())
      .max(NODES_SHOWN)
      .describe(
        `Nodes that the findings are about or that made the last delivery attempt, sorted; at most ${NODES_SHOWN}. Empty if no source names one.`,
      ),
    sample: Finding.nullable().describe('The oldest of them, or any if none has a `since`.'),
    help: z.string().describe('Where the documentation of the package explains this kind.'),
  })
  .describe('All findings of one kind.')
export type FindingGroup = z.infer<typeof FindingGroup>

/** How many findings there are of each kind. */
export const FindingSummary = z
  .object({
    kinds: z.array(FindingGroup).describe('Every kind that a source here can show, also those without a finding.'),
    observed_at: Timestamp.describe('When they were counted.'),
    completeness: Completeness.describe('How far the sources were read.'),
    not_looked_for: z.array(FindingKind).describe('Kinds that no inspector of this deployment can show.'),
  })
  .describe('How many findings there are of each kind, counted in the first page of each list.')
export type FindingSummary = z.infer<typeof FindingSummary>

/**
 * Creates a finding with its texts and its id.
 *
 * @param named The values that its id is derived from.
 */
export function finding(
  kind: FindingKind,
  subject: Record<string, string>,
  since: string | null,
  evidence: Evidence[],
  named: Readonly<Record<string, string>> = subject,
): Finding {
  const [means, does_not_mean] = WORDS[kind]
  const ids = Object.values(named).map(encodeURIComponent).join('/')
  const whole = `${kind}:${ids}`
  const finding_id = utf8Length(whole) <= ID_BYTES ? whole : `${kind}:${digest64(ids)}`
  return { finding_id, kind, subject, evidence, since, means, does_not_mean, help: helpOf(kind) }
}

/** The heading of a kind in the documentation of the package. */
export const helpOf = (kind: FindingKind): string => `docs/findings.md#${kind}`

/** The path and query of a request that shows something, below the prefix. */
export function requestOf(path: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString()
  return search === '' ? path : `${path}?${search}`
}

/** Some fields of a record, as evidence shows them. */
export function fieldsOf<T extends object>(record: T, ...names: (keyof T & string)[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, record[name]])) as JsonObject
}
