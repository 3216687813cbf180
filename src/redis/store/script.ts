/** How writers run their Lua files (arguments.ts): one shard, one atomic step, by digest. Readers import nothing of this. */
import { Refusal, wasNotRun } from '../../refusal.js'
import { type Arguments, argvOf, type Constants, localsOf, withConstants } from './arguments.js'
import { shardPrefix } from './keys.js'
import preludeLua from './prelude.lua'
import { OtherShards, type StoreReply, UnknownScript } from './reply.js'
import type { Store } from './store.js'

/** A script as a store knows it. */
export interface ScriptText {
  /** `family.verb`, unique. */
  readonly name: string
  readonly source: string
  readonly digest: Promise<string>
  readonly anyTime: boolean
}

/** A script with what it is given and what it answers. */
export interface Script<Given, Answer> extends ScriptText {
  argv(given: Given): string[]
  read(reply: StoreReply): Answer
}

export interface ScriptOptions<Names extends string, Answer, Rest extends string = never> {
  /** Locals of the script, in the order in which they travel. */
  args: readonly Names[]
  /** A table of the script, of as many values as a caller gives. */
  rest?: Rest
  /** Reads the reply. A throw says that the store holds what cannot be worked with. */
  answer: (reply: StoreReply) => Answer
  /** What stands in the Lua as `{{NAME}}`. */
  constants?: Constants
  /** Runs in a full store, too: for what leaves more room than it takes. */
  freesMemory?: boolean
  /**
   * Does no harm however late it comes, because something in it says what it comes after: whoever asked learns at once
   * that a link has ended.
   */
  anyTime?: boolean
}

async function sha1(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * A script over one shard. Its Lua finds its arguments by their names, `now` (epoch ms), `K(...)` (a key of the shard from
 * raw ids) and what else `prelude.lua` has. It refuses with `return refuse(code)`.
 *
 * @throws TypeError where `constants` are not those that the Lua names
 */
export function defineScript<Names extends string, Answer, Rest extends string = never>(
  name: string,
  { args, rest, answer, constants, freesMemory = false, anyTime = false }: ScriptOptions<Names, Answer, Rest>,
  lua: string,
): Script<Arguments<Names, Rest>, Answer> {
  // A store without memory left refuses the scripts that would give it some, unless they say that they may run.
  const flags = freesMemory ? '#!lua flags=allow-oom\n' : ''
  const source = `${flags}${localsOf(['sender', ...args], rest)}${preludeLua}${withConstants(lua, constants)}`
  let digest: Promise<string> | undefined
  return {
    name,
    source,
    anyTime,
    get digest() {
      digest ??= sha1(source)
      return digest
    },
    argv: (given) => argvOf(args, rest, given),
    read: answer,
  }
}

/**
 * What a writer that has met a value of somebody else's is to throw. The value is the operator's to look at: it is
 * handed to `onError`, and whoever called learns no more than that the store cannot serve this now.
 */
export function toUnavailable(store: Store, error: unknown): Refusal {
  if (error instanceof Refusal) return error
  store.onError(error)
  return new Refusal('unavailable', 'the store holds what cannot be worked with', { cause: error, outcome: 'unknown' })
}

/**
 * Runs `script` in `shard`, and never after it was given up, nor in a shard that was written by another number of
 * shards.
 *
 * @throws Refusal with the script's own code; `unavailable` also where a key holds what it cannot work with. What its
 * `outcome` says holds for everything that the script does.
 */
export async function runScript<Given, Answer>(
  store: Store,
  script: Script<Given, Answer>,
  shard: number,
  given: Given,
): Promise<Answer> {
  const prefix = shardPrefix(store.deploymentId, shard)
  await store.heldShards()
  const argv = script.argv(given)
  const run: Parameters<Store['fenced']>[1] = async (ends, command) => {
    // Known by now, and another one where an open number was replaced.
    const shards = await store.heldShards()
    // Read anew for the second try: commands that were sent in between must not be overtaken by an older time.
    const rest = () => ['1', prefix, `${store.now ? store.now() : ''} ${ends} ${shards}`, ...argv]
    try {
      return await command(['EVALSHA', await script.digest, ...rest()])
    } catch (error) {
      if (error instanceof UnknownScript) return command(['EVAL', script.source, ...rest()])
      throw error
    }
  }
  const attempt = () => store.fenced(shard, run, script)
  try {
    const reply = await attempt().catch(async (error) => {
      if (!(error instanceof OtherShards)) throw error
      await store.confirmShards(shard)
      return attempt()
    })
    return script.read(reply)
  } catch (error) {
    // A client's own is `unavailable` by now: this one is ours, a defect and no state of the store.
    throw error instanceof TypeError ? error : toUnavailable(store, error)
  }
}

/**
 * Runs something in every shard, of which one at most knows what it is about. Answers what that one said, and that
 * whatever became of the others, for it is done there; nothing where none does.
 *
 * @throws Refusal as above; `not_run` only where no shard may have run it.
 */
export async function runInShards<Answer>(
  run: (shard: number) => Promise<Answer>,
  shards: number,
  isFound: (answer: Answer) => boolean,
): Promise<{ shard: number; answer: Answer } | undefined> {
  const all = await Promise.allSettled(Array.from({ length: shards }, (_, shard) => run(shard)))
  for (const [shard, one] of all.entries())
    if (one.status === 'fulfilled' && isFound(one.value)) return { shard, answer: one.value }
  throwMostSevere(all)
  return undefined
}

/** Throws where one has failed; of several an error that says that something may have run. */
export function throwMostSevere(all: readonly PromiseSettledResult<unknown>[]): void {
  const errors = all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  if (errors.length > 0) throw errors.find((error) => !wasNotRun(error)) ?? errors[0]
}
