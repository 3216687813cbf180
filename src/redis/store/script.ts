/** Runs the Lua scripts of writers (see arguments.ts): one shard, one atomic step, by digest. Not used by readers. */
import { Refusal, wasNotRun } from '../../internal/refusal.js'
import { type Arguments, argvOf, type Constants, localsOf, withConstants } from './arguments.js'
import preludeLua from './prelude.lua'
import { OtherShards, type StoreReply, UnknownScript } from './reply.js'
import type { Store } from './store.js'

/** A script as it is sent to the store. */
export interface ScriptText {
  /** `family.verb`, unique. */
  readonly name: string
  readonly source: string
  readonly digest: Promise<string>
  readonly anyTime: boolean
}

/** A script with the types of its arguments and its result. */
export interface Script<Given, Answer> extends ScriptText {
  argv(given: Given): string[]
  read(reply: StoreReply): Answer
}

export interface ScriptOptions<Names extends string, Answer, Rest extends string = never> {
  /** Locals of the script, in the order of its arguments. */
  args: readonly Names[]
  /** Name of a table in the script that takes any number of values. */
  rest?: Rest
  /** Parses the reply. A throw means that the store holds invalid data. */
  answer: (reply: StoreReply) => Answer
  /** Values for `{{NAME}}` in the Lua file. */
  constants?: Constants
  /** The script also runs in a full store, because it frees more memory than it uses. */
  freesMemory?: boolean
  /**
   * The script is harmless however late it arrives, because it checks its order itself. Its caller gets an error as
   * soon as the connection is lost.
   */
  anyTime?: boolean
}

export async function sha1(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * Defines a script for one shard. Its Lua code can use its arguments by name, `now` (epoch ms), `K(...)` (a key of the
 * shard from raw ids) and the functions of `prelude.lua`. It refuses a request with `return refuse(code)`.
 *
 * @throws TypeError if `constants` do not match the names in the Lua code.
 */
export function defineScript<Names extends string, Answer, Rest extends string = never>(
  name: string,
  { args, rest, answer, constants, freesMemory = false, anyTime = false }: ScriptOptions<Names, Answer, Rest>,
  lua: string | undefined,
): Script<Arguments<Names, Rest>, Answer> {
  // Without this flag, a store without free memory rejects even scripts that would free some.
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
 * Returns the error that a writer throws for invalid stored data. The details are for the operator: they go to
 * `onError`, and the caller only gets `unavailable`.
 */
export function toUnavailable(store: Store, error: unknown): Refusal {
  if (error instanceof Refusal) return error
  store.onError(error)
  return new Refusal('unavailable', 'the store holds invalid data', { cause: error, outcome: 'unknown' })
}

/**
 * Runs `script` in `shard`. It never runs after the caller has given up, nor in a shard with another number of shards.
 *
 * @throws Refusal with the script's own code, or `unavailable`, also if a key holds invalid data. Its `outcome` applies
 * to everything that the script does.
 */
export async function runScript<Given, Answer>(
  store: Store,
  script: Script<Given, Answer>,
  shard: number,
  given: Given,
): Promise<Answer> {
  const prefix = store.key(shard)
  await store.heldShards()
  const argv = script.argv(given)
  const run: Parameters<Store['fenced']>[1] = async (ends, command) => {
    // Known by now. It may have changed if an open number was replaced.
    const shards = await store.heldShards()
    // Read again for the second attempt: commands that were sent in between must not be overtaken by an older time.
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
    // Errors of the client are `unavailable` by now: a TypeError here is a defect of this library.
    throw error instanceof TypeError ? error : toUnavailable(store, error)
  }
}

/**
 * Runs `run` in every shard and returns the result of the shard that knows the subject (at most one does), even if
 * other shards fail. Returns `undefined` if none does.
 *
 * @throws Refusal as above; `not_run` only if it ran in no shard.
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

/** Throws if any of `all` was rejected: preferably an error whose operation may have run. */
export function throwMostSevere(all: readonly PromiseSettledResult<unknown>[]): void {
  const errors = all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  if (errors.length > 0) throw errors.find((error) => !wasNotRun(error)) ?? errors[0]
}
