/** Jobs as commands: a page of them index by index, and one by its name. */
import { raceAbort } from '../async/abort.js'
import { BadRecord } from '../contract/bad-record.js'
import type { CommandFilter, CommandKey, DeliveryCommand, DeliveryStatus } from '../contract/delivery.js'
import { addressOf, admitsCommand, toDeliveryCommand } from '../contract/delivery-rules.js'
import { type Ask, examinable, omitting, type Page, type PageQuery } from '../contract/page.js'
import { type Identify, PAYLOAD_BYTES } from './identity.js'
import { jobOf } from './ids.js'
import { type JobRow, nameOf, readJob, toRow } from './jobs.js'
import { behind, type Position, parseToken, startOf, tokenOf } from './position.js'
import type { Link } from './queue.js'
import { INDEXES, type Index, READ_JOB_BY_ID, READ_JOBS } from './scripts.js'

/** Jobs of one question: some milliseconds of the store at most. */
const CHUNK = 500
/** Jobs of one question where a filter may pass over most of them. */
const CHUNK_FILTERED = 100
/** After which a page ends with what it has. With one more stretch it is within the router's 5 s, however slow `identify` is. */
const PAGE_MS = 1_500
/** Bytes of the payloads of one question, all of them together. */
const CHUNK_BYTES = 4_194_304

/** The queues of a host by their names, and who says whose a job is. */
export interface Queues {
  readonly links: readonly Link[]
  readonly identify: Identify | undefined
}

/** Which indexes hold the jobs that stand there. */
const INDEXES_OF: Partial<Record<NonNullable<CommandFilter['state']>, readonly Index[]>> = {
  waiting: ['waiting-children', 'delayed', 'prioritized', 'paused', 'wait'],
  attempted: ['waiting-children', 'delayed', 'prioritized', 'paused', 'wait', 'active'],
  resulted: ['completed'],
  failed: ['failed'],
}

const payloadBytes = ({ identify }: Queues) => (identify === undefined ? 0 : PAYLOAD_BYTES)

/** The indexes that can hold what the filter admits. */
function indexesFor({ state, overdue, user_id, client_id }: CommandFilter, { identify }: Queues): readonly Index[] {
  // No job has a deadline, and without `identify` none is anybody's.
  if (overdue || (identify === undefined && (user_id !== undefined || client_id !== undefined))) return []
  return state === undefined ? INDEXES : (INDEXES_OF[state] ?? [])
}

/** A stretch of one queue from `from`, and where it goes on; `null` at the end of the queue. */
async function readStretch(
  queues: Queues,
  from: Position,
  indexes: readonly Index[],
  count: number,
  ask: Ask,
): Promise<{ rows: JobRow[]; next: Position | null }> {
  const link = queues.links[from.queue] as Link
  const left = indexes.filter((index) => INDEXES.indexOf(index) >= INDEXES.indexOf(from.index))
  const { place, left: unseen, score, last } = left[0] === from.index ? from : startOf(from.queue, from.index)
  const reply = await link.run(
    READ_JOBS,
    {
      wanted: count,
      payload_bytes: payloadBytes(queues),
      all_bytes: CHUNK_BYTES,
      ...{ place, left: unseen, score, last },
      indexes: left,
    },
    ask,
  )
  const [index, told]: unknown[] = Array.isArray(reply) ? reply : []
  if (!Array.isArray(told)) throw new TypeError('the store of a queue answered what is no page of jobs')
  const rows = told.map(toRow)
  const shown = rows.at(-1)
  if (index === '') return { rows, next: null }
  const next =
    shown && shown.index === index ? behind(from.queue, link.name, shown) : startOf(from.queue, index as Index)
  return { rows, next }
}

/**
 * A page of the jobs under `filter`, queue by queue and index by index. No snapshot: a job that goes on while a walk is under way
 * may be shown twice, and one that comes back to an index before is missed.
 */
export async function listCommands(
  queues: Queues,
  filter: CommandFilter,
  { limit, cursor }: PageQuery,
  ask: Ask,
  now: () => number,
): Promise<Page<DeliveryCommand>> {
  const { links, identify } = queues
  const indexes = indexesFor(filter, queues)
  const isFiltered = Object.keys(filter).length > 0
  const only = filter.scope_id === undefined ? null : links.findIndex(({ name }) => name === filter.scope_id)
  const first = only ?? 0
  const end = only === null ? links.length : only < 0 ? 0 : only + 1
  const start = (queue: number): Position | null =>
    queue < end && indexes.length > 0 && queue >= 0 ? startOf(queue, indexes[0] as Index) : null

  let position = cursor === null ? start(first) : parseToken(cursor, links)
  const items: DeliveryCommand[] = []
  const most = examinable(ask)
  const startedAt = performance.now()
  const isInTime = () => performance.now() - startedAt < PAGE_MS
  let [examined, omitted] = [0, 0]
  while (position !== null && items.length < limit && examined < most && (examined === 0 || isInTime())) {
    const wanted = Math.max(limit - items.length, isFiltered ? CHUNK_FILTERED : 1)
    const { queue }: Position = position
    const link = links[queue] as Link
    const { rows, next } = await readStretch(queues, position, indexes, Math.min(CHUNK, wanted, most - examined), ask)
    const records = await raceAbort(Promise.all(rows.map((row) => readJob(link.name, row, identify, ask))), ask.signal)
    position = next ?? start(queue + 1)
    for (const [i, record] of records.entries()) {
      examined += 1
      if (record instanceof BadRecord) {
        omitted += 1
        ask.onError?.(record)
        continue
      }
      const command = toDeliveryCommand(record, now(), nameOf(rows[i] as JobRow))
      if (!admitsCommand(filter, command)) continue
      items.push(command)
      if (items.length < limit || i === rows.length - 1) continue
      position = behind(queue, link.name, rows[i] as JobRow)
      break
    }
  }
  const next_cursor = position === null ? null : tokenOf(position, links)
  return { items, next_cursor, has_more: position !== null, examined, ...omitting(omitted) }
}

/** The evidence about the job that the key names; `null` where there is none. */
export async function readStatus(queues: Queues, key: CommandKey, ask: Ask): Promise<DeliveryStatus | null> {
  const named = jobOf(key.command_id)
  const link = queues.links.find(({ name }) => name === named?.queue)
  if (!named || !link) return null
  const reply = await link.run(READ_JOB_BY_ID, { id: named.job, payload_bytes: payloadBytes(queues) }, ask)
  const record = await readJob(link.name, toRow(reply), queues.identify, ask)
  // What has no instant is no job: there is none, or it is another key of the queue.
  if (record instanceof BadRecord) return null
  const { user_id, client_id } = addressOf(record)
  return user_id === key.user_id && client_id === key.client_id ? record : null
}
