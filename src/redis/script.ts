/** How writers run their Lua: one shard, one atomic step, by digest. Readers import nothing of this. */
import { Refusal } from '../refusal.js'
import { shardPrefix } from './keys.js'
import { Late, type Reply, UnknownScript } from './reply.js'
import { PRELUDE } from './scripts/prelude.js'
import type { Store } from './store.js'

export interface Script {
  readonly source: string
  readonly digest: Promise<string>
}

async function sha1(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * A script over one shard. It finds `now` (epoch ms), `K(...)` (a key of the shard from raw ids), the table functions of
 * the prelude, and its own arguments from `ARGV[2]`. It refuses with `return redis.error_reply('REFUSE code')`.
 */
export function defineScript(body: string): Script {
  const source = `${PRELUDE}\n${body}`
  let digest: Promise<string> | undefined
  return {
    source,
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
 * Runs `script` in `shard`, and never after it was given up: it carries an instant of that shard's clock that is not
 * later. Where the clock has moved in the meantime the store says what it shows now, and it is tried once more.
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
  const endsAt = performance.now() + store.commandTimeoutMs
  async function run(command: string, source: string) {
    const ends = await store.fence(shard, endsAt)
    // Read anew for the second try: commands that were sent in between must not be overtaken by an older time.
    const clock = `${store.now ? store.now() : ''} ${ends}`
    const given = [command, source, '1', prefix, clock, ...args.map(String)]
    return store.command(given, prefix, undefined, endsAt - performance.now())
  }
  async function tried() {
    try {
      return await run('EVALSHA', await script.digest)
    } catch (error) {
      if (error instanceof UnknownScript) return run('EVAL', script.source)
      throw error
    }
  }
  try {
    return await tried().catch((error) => {
      if (!(error instanceof Late)) throw error
      store.heardTime(shard, error.time)
      return tried()
    })
  } catch (error) {
    // A client's own is `unavailable` by now: this one is ours, a defect and no state of the store.
    throw error instanceof TypeError ? error : unusable(store, error)
  }
}
