/** Read-only scripts that read in a whole shard with one command instead of one per user, row or name. */

import { CHURN_MINUTES, minuteOf } from '../../internal/contract/connections.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { type Arguments, argvOf, type Constants, localsOf, withConstants } from '../store/arguments.js'
import { count, listOf, type StoreReply, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import readLua from './read.lua'
import { BadRow, FOREIGN, ROW_BYTES } from './rows.js'
import { scripts } from './table.lua'

export interface ReadScript<Given, Answer> {
  readonly source: string
  argv(given: Given): string[]
  read(answer: StoreReply[]): Answer
}

interface ReadScriptOptions<Names extends string, Answer, Rest extends string = never> {
  /** Names of the script's arguments. */
  args: readonly Names[]
  /** Name of a table in the script that takes any number of values. */
  rest?: Rest
  /** Values for `{{NAME}}` in the Lua file. */
  constants?: Constants
  answer: (answer: StoreReply[]) => Answer
}

/** A text of that many bytes exceeds the size of a row even at three bytes per character. */
const CUT_BYTES = 3 * (ROW_BYTES + 1)

const OPENING = withConstants(readLua, { FOREIGN, CUT_BYTES })

/**
 * Defines a script whose Lua code can use its arguments by name, `K(...)` (a key of the shard from raw ids),
 * `read(command, key, ...)`, `note(key)` and `row(table, id)`. It returns a table that starts with `foreign`. It may
 * only use commands that an observer may send directly: the store checks a script against the permissions of its
 * caller.
 */
export function defineReadScript<Names extends string, Answer, Rest extends string = never>(
  { args, rest, constants, answer }: ReadScriptOptions<Names, Answer, Rest>,
  lua: string | undefined,
): ReadScript<Arguments<Names, Rest>, Answer> {
  return {
    source: `${localsOf(args, rest)}${OPENING}${withConstants(lua, constants)}`,
    argv: (given) => argvOf(args, rest, given),
    read: answer,
  }
}

/**
 * A second key that never exists, sent with the prefix, which does not exist either. While a slot migrates, a Cluster
 * runs a script with one key on whichever node it reaches, with half of the shard; with two keys it returns an error.
 */
const SECOND = 'two'

// Half of the keys are on another node, or the store does not let this user send what the script reads.
const UNAVAILABLE_HERE = /non local key|user executing the script|ACL failure|NOPERM|Unknown Redis command/

/**
 * Runs `script` in a shard and returns its result.
 *
 * @throws Refusal `unavailable`; the signal's reason when it aborts.
 */
export async function readShard<Given, Answer>(
  store: Store,
  script: ReadScript<Given, Answer>,
  shard: number,
  given: Given,
  ctx: InspectionContext,
): Promise<Answer> {
  const prefix = store.key(shard)
  const reply = await store
    .command(['EVAL_RO', script.source, '2', prefix, `${prefix}${SECOND}`, ...script.argv(given)], prefix, ctx)
    .catch((error) => {
      if (error instanceof Error && !(error instanceof Refusal) && UNAVAILABLE_HERE.test(error.message))
        throw new Refusal('unavailable', 'the store cannot serve this request now', { cause: error })
      throw error
    })
  const [foreign, ...answer] = listOf(reply)
  for (const key of listOf(foreign)) store.onError(new BadRow(`${key} has the wrong type`), ctx)
  return script.read(answer)
}

// Reads what was counted in each of the last minutes: a sorted set per minute, entries by how often.

/** Returns a reader of the minutes of `table`, at most `entries` of each, in one shard up to the time `now`. */
export function minutesReader(table: string, entries: number) {
  const script = defineReadScript(
    {
      args: ['first', 'last'],
      constants: { TABLE: table, ENTRIES: entries },
      answer: ([minutes]) =>
        listOf(minutes).map((one) => {
          const [minute = null, members = null] = listOf(one)
          return { minute: count(minute), entries: scored(members) }
        }),
    },
    scripts.read_minutes,
  )
  return (store: Store, shard: number, now: number, ctx: InspectionContext) => {
    const last = minuteOf(now)
    return readShard(store, script, shard, { first: last - CHURN_MINUTES + 1, last }, ctx)
  }
}
