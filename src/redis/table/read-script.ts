/** Read-only scripts that answer for a whole shard at once what would be a command per user, row or name. */
import type { InspectionContext } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { type Arguments, argvOf, type Constants, localsOf, withConstants } from '../store/arguments.js'
import { shardPrefix } from '../store/keys.js'
import { listOf, type StoreReply } from '../store/reply.js'
import type { Store } from '../store/store.js'
import readLua from './read.lua'
import { BadRow, FOREIGN, ROW_BYTES } from './rows.js'

export interface ReadScript<Given, Answer> {
  readonly source: string
  argv(given: Given): string[]
  read(answer: StoreReply[]): Answer
}

interface ReadScriptOptions<Names extends string, Answer, Rest extends string = never> {
  /** Locals of the Lua. */
  args: readonly Names[]
  /** A table of the Lua, of as many values as a caller gives. */
  rest?: Rest
  /** What stands in the Lua as `{{NAME}}`. */
  constants?: Constants
  answer: (answer: StoreReply[]) => Answer
}

/** A text of that many bytes is longer than a row even where each of its characters takes three. */
const CUT_BYTES = 3 * (ROW_BYTES + 1)

const OPENING = withConstants(readLua, { FOREIGN, CUT_BYTES })

/**
 * A script whose Lua finds its arguments by their names, `K(...)` (a key of the shard from raw ids),
 * `read(command, key, ...)`, `note(key)` and `row(table, id)`, and answers a table that begins with `foreign`. Its commands are those that an observer
 * may send by itself: the store holds a script to the permissions of whoever sends it.
 */
export function defineReadScript<Names extends string, Answer, Rest extends string = never>(
  { args, rest, constants, answer }: ReadScriptOptions<Names, Answer, Rest>,
  lua: string,
): ReadScript<Arguments<Names, Rest>, Answer> {
  return {
    source: `${localsOf(args, rest)}${OPENING}${withConstants(lua, constants)}`,
    argv: (given) => argvOf(args, rest, given),
    read: answer,
  }
}

/**
 * A key that is never there, named beside the prefix, which is none either. While a slot moves, a Cluster serves a script
 * with one key wherever it lands, in front of half of the shard; with two it says that it cannot tell yet.
 */
const SECOND = 'two'

// Half of the keys are on another node, or the permissions of the host's own making lack what the script reads.
const UNAVAILABLE_HERE = /non local key|user executing the script|ACL failure|NOPERM/

/**
 * What `script` answers of a shard.
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
  const prefix = shardPrefix(store.deploymentId, shard)
  const reply = await store
    .command(['EVAL_RO', script.source, '2', prefix, `${prefix}${SECOND}`, ...script.argv(given)], prefix, ctx)
    .catch((error) => {
      if (error instanceof Error && !(error instanceof Refusal) && UNAVAILABLE_HERE.test(error.message))
        throw new Refusal('unavailable', 'the store cannot answer this now', { cause: error })
      throw error
    })
  const [foreign, ...answer] = listOf(reply)
  for (const key of listOf(foreign)) store.onError(new BadRow(`${key} holds another type than belongs there`), ctx)
  return script.read(answer)
}
