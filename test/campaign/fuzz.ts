/**
 * Sends malformed and hostile requests to the diagnostics router, the relay and the control server, and judges the
 * responses.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { judge } from './fuzz-oracle.js'
import { createPoliteClient } from './fuzz-polite.js'
import { createAttack } from './fuzz-requests.js'
import { send } from './fuzz-wire.js'
import { createFuzzWorld } from './fuzz-world.js'

export interface FuzzOptions {
  /** The same seed sends the same requests. */
  seed: number
  /** Connections, of which some carry several requests. */
  requests: number
}

export interface FuzzReport {
  seed: number
  requests: number
  /** How many answers had which status. */
  statuses: Record<string, number>
  /** What was wrong, each with the number of its connection; at most a hundred. */
  violations: string[]
  /** Bytes that the process held more after garbage collection at the end than after the first quarter. */
  grown: number
}

const AT_ONCE = 32
const VIOLATIONS = 100
/** What the process may hold more at the end: the rest of what its bounds allow to keep. */
const GROWTH = 67_108_864

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

async function heldBytes(): Promise<number> {
  for (let n = 0; n < 3; n++) {
    collect()
    await new Promise(setImmediate)
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Runs the fuzzer once. Findings are returned in the report; it rejects only if it could not run. */
export async function fuzz({ seed, requests }: FuzzOptions): Promise<FuzzReport> {
  const violations: string[] = []
  const statuses: Record<string, number> = {}
  const blame = (words: readonly string[], by: string) => {
    for (const word of words) if (violations.length < VIOLATIONS) violations.push(`${by}: ${word}`)
  }
  const unhandled = (error: unknown) => blame([`unhandled: ${error instanceof Error ? error.stack : error}`], 'process')
  process.on('unhandledRejection', unhandled)
  process.on('uncaughtException', unhandled)
  const world = await createFuzzWorld()
  const polite = await createPoliteClient(world.targets)
  let base = 0
  let held = 0
  try {
    for (let index = 0; index < requests; index += AT_ONCE) {
      const batch = Array.from({ length: Math.min(AT_ONCE, requests - index) }, async (_, n) => {
        const attack = createAttack(seed, index + n, world.targets)
        const exchange = await send(world.targets.ports[attack.surface], attack)
        for (const { status } of exchange.answers) statuses[status] = (statuses[status] ?? 0) + 1
        blame(
          judge(attack, exchange, world.targets.prefix),
          `seed ${seed}, connection ${attack.index}, ${attack.surface}`,
        )
      })
      await world.restore()
      await Promise.all([...batch, polite.round().then((words) => blame(words, 'a well-behaved client'))])
      if (base === 0 && index >= requests / 4) base = await heldBytes()
    }
    blame(await polite.leave(), 'a well-behaved client')
    held = await heldBytes()
    if (held - base > GROWTH) blame([`${held - base} bytes more are held`], 'memory')
    blame(world.reported.slice(0, VIOLATIONS), 'onError')
  } finally {
    await world.close()
    process.off('unhandledRejection', unhandled)
    process.off('uncaughtException', unhandled)
  }
  if (world.streams > 0) blame([`${world.streams} streams are left`], 'relay')
  return { seed, requests, statuses, violations, grown: held - base }
}
