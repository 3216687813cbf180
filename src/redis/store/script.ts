/** How writers run their Lua: one shard, one atomic step, by digest. Readers import nothing of this. */
import { Refusal, wasNotRun } from '../../refusal.js'
import { shardPrefix } from './keys.js'
import { PRELUDE } from './prelude.js'
import { OtherShards, type Reply, UnknownScript } from './reply.js'
import type { Store } from './store.js'

export interface Script {
  readonly source: string
  readonly digest: Promise<string>
  readonly anyTime: boolean
}

async function sha1(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * A script over one shard. It finds `now` (epoch ms), `K(...)` (a key of the shard from raw ids), the table functions of
 * the prelude, and its own arguments from `ARGV[2]`. It refuses with `return redis.error_reply('REFUSE code')`.
 *
 * @param options.freesMemory runs in a full store, too: for what leaves more room than it takes.
 * @param options.anyTime does no harm however late it comes, because something in it says what it comes after: whoever
 * asked learns at once that a link has ended.
 */
export function defineScript(body: string, { freesMemory = false, anyTime = false } = {}): Script {
  // A store without memory left refuses the scripts that would give it some, unless they say that they may run.
  const source = `${freesMemory ? '#!lua flags=allow-oom\n' : ''}${PRELUDE}\n${body}`
  let digest: Promise<string> | undefined
  return {
    source,
    anyTime,
    get digest() {
      digest ??= sha1(source)
      return digest
    },
  }
}

/**
 * What a writer that has met a value of somebody else's is to throw. The value is the operator's to look at: it is
 * reported, and whoever called learns no more than that the store cannot serve this now.
 */
export function unusable(store: Store, error: unknown): Refusal {
  if (error instanceof Refusal) return error
  store.report(error)
  return new Refusal('unavailable', 'the store holds what cannot be worked with', { cause: error, outcome: 'unknown' })
}

/**
 * Runs `script` in `shard`, and never after it was given up, nor in a shard that was written by another number of
 * shards.
 *
 * @throws Refusal with the script's own code; `unavailable` also where a key holds what it cannot work with. What its
 * `outcome` says holds for everything that the script does.
 */
export async function runScript(
  store: Store,
  script: Script,
  shard: number,
  ...args: (string | number)[]
): Promise<Reply> {
  const prefix = shardPrefix(store.deploymentId, shard)
  const shards = await store.claimShards()
  const run: Parameters<Store['fenced']>[1] = async (ends, command) => {
    // Read anew for the second try: commands that were sent in between must not be overtaken by an older time.
    const rest = () => ['1', prefix, `${store.now ? store.now() : ''} ${ends} ${shards}`, ...args.map(String)]
    try {
      return await command(['EVALSHA', await script.digest, ...rest()])
    } catch (error) {
      if (error instanceof UnknownScript) return command(['EVAL', script.source, ...rest()])
      throw error
    }
  }
  const tried = () => store.fenced(shard, run, script)
  try {
    return await tried().catch(async (error) => {
      if (!(error instanceof OtherShards)) throw error
      await store.confirmShards(shard)
      return tried()
    })
  } catch (error) {
    // A client's own is `unavailable` by now: this one is ours, a defect and no state of the store.
    throw error instanceof TypeError ? error : unusable(store, error)
  }
}

/**
 * Runs something in every shard, of which one at most knows what it is about. Answers what that one said, and that
 * whatever became of the others, for it is done there; nothing where none does.
 *
 * @throws Refusal as above; `not_run` only where no shard may have run it.
 */
export async function runInShards(
  run: (shard: number) => Promise<Reply>,
  shards: number,
  isFound: (reply: Reply) => boolean,
): Promise<{ shard: number; reply: Reply } | undefined> {
  const all = await Promise.allSettled(Array.from({ length: shards }, (_, shard) => run(shard)))
  for (const [shard, one] of all.entries())
    if (one.status === 'fulfilled' && isFound(one.value)) return { shard, reply: one.value }
  const errors = all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  if (errors.length > 0) throw errors.find((error) => !wasNotRun(error)) ?? errors[0]
  return undefined
}
