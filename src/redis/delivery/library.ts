/** Runs the steps of a node in a shard: as a Redis function, or as a script if the store or its ACL doesn't allow functions. */

import { ATTEMPTS_KEPT, LATENCY_SAMPLE, NO_REASON, REASONS_MAX } from '../../internal/contract/delivery.js'
import { Refusal } from '../../internal/refusal.js'
import { callWithAll, withConstants } from '../store/arguments.js'
import type { RedisClient } from '../store/client.js'
import { type StoreReply, UnknownScript } from '../store/reply.js'
import { sha1 } from '../store/script.js'
import libraryLua from './library.lua'
import { withRecords } from './record.js'
import { withSteps } from './steps.js'
import turnLua from './turn.lua'

/** How long the lease of a node lasts after its last pass: five times the longest time between two passes. */
export const LEASE_MS = 5_000
/** Number of commands in a chunk: their references fit in one compact list of the store. */
export const CHUNK = 256
/** Width of a bucket of deadlines, in ms. */
export const BUCKET_MS = 250

const SOURCE = withConstants(withSteps(withRecords(turnLua) ?? ''), {
  CHUNK,
  BUCKET: BUCKET_MS,
  ATTEMPTS_KEPT,
  LEASE: LEASE_MS,
  // How long a detach is remembered, in ms: longer than an attach that was sent before it can be late.
  DETACHED: 60_000,
  // Limits of one pass and one run, which block the store for a few milliseconds.
  COMMANDS_A_PASS: 200,
  CHUNKS_A_PASS: 8,
  CHUNKS_A_RUN: 64,
  SCOPES_A_PASS: 50,
  MESSAGES_A_PASS: 200,
  ENTRIES_A_PASS: 1_000,
  EXPIRING_A_PASS: 50,
  // Longest delay between the end of retention and the deletion, in ms.
  TIDY_AFTER: 10_000,
  // Retention ends at a multiple of this, in ms, or of 1/64 of the retention if that is shorter.
  RETENTION_STEP: 1_000,
  SAMPLE: LATENCY_SAMPLE,
  NO_REASON,
  REASONS_MAX,
  REFILL_MAX: 64,
  // Unread messages that are kept for a node. A node that misses more restarts under a new incarnation.
  MESSAGES_MAX: 10_000,
})

const scriptOf = (flags: string) => `#!lua${flags}\n${SOURCE}${callWithAll('turn')}`

interface Sources {
  library: string
  /** Names of the function: one that a store out of memory refuses, and one that it runs. */
  functions: readonly [string, string]
  scripts: readonly [string, string]
  digests: readonly [string, string]
}

/** Names the library after its source, so that nodes of different builds can share a store. */
async function makeSources(): Promise<Sources> {
  const name = `relayscope_${(await sha1(SOURCE)).slice(0, 12)}`
  const functions = [`${name}_turn`, `${name}_free`] as const
  const register = withConstants(libraryLua, { TURN: functions[0], FREE: functions[1] })
  const library = `#!lua name=${name}\nlocal function make()\n${SOURCE}return turn\nend\n${register}`
  const scripts = [scriptOf(''), scriptOf(' flags=allow-oom')] as const
  return { library, functions, scripts, digests: [await sha1(scripts[0]), await sha1(scripts[1])] }
}

let sources: Promise<Sources> | undefined

const NO_FUNCTION = /Function not found/i
const NO_FUNCTIONS = /NOPERM|unknown command|unknown subcommand|OOM command not allowed/i

const messageOf = (error: unknown) =>
  error instanceof Refusal ? (error.detail ?? '') : error instanceof Error ? error.message : ''

/** Clients that can't use functions, because the store has none or its ACL forbids them. */
const withoutFunctions = new WeakSet<RedisClient>()

/**
 * Runs the steps of `batch` in the shard of `prefix`. `head` has the time, the limits and the caller of the run.
 *
 * @param freesMemory Whether it runs even in a store out of memory.
 */
export async function runSteps(
  client: RedisClient,
  command: (args: string[]) => Promise<StoreReply>,
  prefix: string,
  [head, batch]: readonly [string, string],
  freesMemory: boolean,
): Promise<StoreReply> {
  sources ??= makeSources()
  const { library, functions, scripts, digests } = await sources
  const which = freesMemory ? 1 : 0
  const rest = ['1', prefix, head, batch]
  if (!withoutFunctions.has(client)) {
    const call = () => command(['FCALL', functions[which], ...rest])
    try {
      return await call()
    } catch (error) {
      if (NO_FUNCTION.test(messageOf(error))) {
        try {
          await command(['FUNCTION', 'LOAD', 'REPLACE', library])
          return await call()
        } catch (unloaded) {
          if (!NO_FUNCTIONS.test(messageOf(unloaded)) && !NO_FUNCTION.test(messageOf(unloaded))) throw unloaded
          if (/NOPERM|unknown/i.test(messageOf(unloaded))) withoutFunctions.add(client)
        }
      } else if (/NOPERM|unknown command/i.test(messageOf(error))) withoutFunctions.add(client)
      else throw error
    }
  }
  try {
    return await command(['EVALSHA', digests[which], ...rest])
  } catch (error) {
    if (!(error instanceof UnknownScript)) throw error
    return command(['EVAL', scripts[which], ...rest])
  }
}
