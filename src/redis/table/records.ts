/** Changes rows by the rules of their family: reads one, lets the rule decide, and writes if nothing else has changed it. */
import { shown } from '../../internal/contract/checks.js'
import { LOST_MAX } from '../../internal/contract/contexts.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { Refusal } from '../../internal/refusal.js'
import type { Change, Step } from '../../internal/rules/records.js'
import { createCache } from '../store/cache.js'
import { WrongType } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import type { Store } from '../store/store.js'
import { scripts } from './records.lua'
import { BadRow, parseRow, type TableReader } from './rows.js'

/** The index of rows that are readable for longer than others, by user. It comes last, and its size is bounded. */
export const LOST_OF = 'lost_of'

/**
 * Writes a row unless another write has changed it since it was read. Returns the content that it has instead, or
 * `undefined` once it is written. `content`: '' deletes the row.
 */
export const CHANGE_ROW = defineScript(
  'records.change',
  {
    args: ['token', 't', 'id', 'expected', 'isNew', 'content', 'leaves', 'max_per_user', 'max_entries'],
    rest: 'index',
    answer: (reply) => (typeof reply === 'string' ? reply : undefined),
    constants: { LOST_OF, LOST_MAX },
  },
  scripts.change,
)

/** How often a change is tried while other writes of the same record come in between. */
export const TRIES = 10
export const changedMeanwhile = () =>
  new Refusal('unavailable', 'other writes of the same record came in between', { outcome: 'not_run' })
/** Rows that a node remembers, of some hundred bytes each. */
const WRITTEN_MAX = 10_000

/** A row as it is stored: its indexes, the user's first, and when it leaves. */
export interface Encoded<S> {
  row: S
  index: readonly (readonly [field: string, value: string])[]
  leaves: number | '+inf'
}

interface Options<R extends object, S extends object> {
  table: TableReader<R, S>
  maxEntries: number
  maxEntriesPerUser: number
  /** Whether a rule may delete a row. */
  canDelete?: true
  encode(change: Change<R, unknown> & { record: R }, row: S | undefined, now: number, sent: string): Encoded<S>
}

/** Returns the content of a row: '' if there is none, an invalid one for a value that this library did not write. */
export async function readContent(
  store: Store,
  { name }: Pick<TableReader<object>, 'name'>,
  shard: number,
  id: string,
): Promise<string> {
  const key = store.key(shard, name, 'row', id)
  const value = await store.command(['GET', key], key).catch((error) => {
    if (!(error instanceof WrongType)) throw error
    return 'x'
  })
  return typeof value === 'string' ? value.slice(value.indexOf('\n') + 1) || ' ' : ''
}

/** Returns the row with that content; calls `onError` for an invalid one. */
export function parseContent<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  id: string,
  content: string,
): S | undefined {
  const parsed = content === '' ? undefined : parseRow(table, id, `{}\n${content}`)
  if (parsed && !('row' in parsed))
    store.onError(new BadRow(`${table.name} holds an invalid row under ${shown(id)}: ${parsed.text}`))
  return parsed && 'row' in parsed ? parsed.row : undefined
}

export function createRecords<R extends object, S extends object>(store: Store, options: Options<R, S>) {
  const { table, encode } = options
  const t = table.name
  /** Rows as this node wrote them last. Most reports of a record come from one node, which then reads nothing. */
  const written = createCache<string>(WRITTEN_MAX)

  const read = (shard: number, id: string) => readContent(store, table, shard, id)
  const rowOf = (id: string, content: string) => parseContent(store, table, id, content)

  /** Runs `step` on the row with that content until no other write comes in between. */
  async function change<A>(shard: number, id: string, step: Step<R, A>, sent: string, first?: string): Promise<A> {
    // What is remembered may be outdated: it is only good for a write, which the store checks.
    const remembered = first === undefined ? written.get(id) : undefined
    let isFresh = remembered === undefined
    let expected = first ?? remembered ?? (await read(shard, id))
    for (let tries = 0; tries < TRIES; tries++) {
      const now = await store.time()
      const row = rowOf(id, expected)
      const known = row && table.read(row, now)
      let next: Change<R, A> | undefined
      try {
        next = step(known, toTimestamp(now))
      } catch (error) {
        if (isFresh) throw error
      }
      if (next?.record === undefined) {
        if (next && isFresh) return next.answer
        expected = await read(shard, id)
        isFresh = true
        continue
      }
      const { record, answer } = next
      const made = record && encode({ ...next, record }, row, now, sent)
      const content = made ? JSON.stringify(made.row) : ''
      const found = await runScript(store, CHANGE_ROW, shard, {
        token: options.canDelete ? crypto.randomUUID() : '',
        t,
        id,
        expected,
        isNew: known ? '' : '1',
        content,
        leaves: made?.leaves ?? '',
        max_per_user: options.maxEntriesPerUser,
        max_entries: options.maxEntries,
        index: made?.index.flat() ?? [],
      })
      if (found === undefined) {
        written.set(id, content)
        return answer
      }
      expected = found
      isFresh = true
    }
    throw changedMeanwhile()
  }

  return { read, rowOf, change }
}
