/** Lets every command of an act meet every misfortune, one at a time, and looks whether what must be so is so. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createStore } from '../../../src/redis/store/store.js'
import { wasNotRun } from '../../../src/refusal.js'
import { createFlakySpill } from '../../contract/history.js'
import { createTurns } from '../in-turn.js'
import type { Fault, Matcher } from '../lossy-plan.js'
import { type LossyStore, startLossyStore } from '../lossy-store.js'
import { type Connected, clients, describeRedis, type Server, startCluster, startServer } from '../server.js'
import { soon } from '../wait-for.js'
import { type Act, createNode, type World } from './act.js'

const FAULTS: readonly Fault[] = ['lost', 'held', 'late', 'repeated', 'unsent']
type Kind = keyof typeof clients

/** A delay beyond it is what three seconds are beyond the two of a host. */
const SHORT_MS = 1_000
/** Above all that a busy machine needs: where the client sends again, what is late is in time to do harm. */
const LONG_MS = 20_000
/** Cases at once, of all acts: most of them wait. */
const AT_ONCE = 24
/** Of the same command in one act: a call asks each shard once. */
const OF_A_KIND = 2

/** What a command is, whatever it says: the scripts by their digest. */
const kindOf = ([name = '', body = '']: readonly string[]) => (/^EVAL/.test(name) ? `${name} ${body}` : name)
/** What a client says of itself, and what cannot be told apart from messages. */
const ownWords = /^(hello|client|info|auth|select|ping|command|cluster|readonly|s?p?(un)?subscribe|script)$/i

interface Seen {
  kind: string
  nth: number
}

let deployments = 0

const inTurn = createTurns(AT_ONCE)

/** @param faults What each command of a call meets. */
export function createCampaign(kind: Kind, faults: readonly Fault[] = FAULTS) {
  const isCluster = kind.endsWith('cluster')
  let servers: readonly Server[] = []
  let ports: number[]
  let direct: Connected
  beforeAll(async () => {
    servers = isCluster ? (await startCluster()).servers : [await startServer()]
    ports = servers.map(({ port }) => port)
    direct = await clients[isCluster ? 'node-redis cluster' : 'node-redis'](ports)
  })
  afterAll(async () => {
    await direct?.close()
    await Promise.all(servers.map((server) => server.stop()))
  })
  /** Commands that are no scripts, with the faults that they have met. */
  const common = new Set<string>()

  async function inWorld<T>(commandTimeoutMs: number, work: (world: World, lossy: LossyStore) => Promise<T>) {
    const lossy = await startLossyStore(...ports)
    const far = await (isCluster ? clients[kind](ports, lossy.ports) : clients[kind]([lossy.port]))
    const spill = createFlakySpill()
    const deploymentId = `lossy${++deployments}`
    const store = createStore({ client: direct.client, deploymentId, commandTimeoutMs: LONG_MS })
    const world: World = {
      far: createNode({ client: far.client, deploymentId, commandTimeoutMs, spill }),
      near: createNode({ client: direct.client, deploymentId, commandTimeoutMs: LONG_MS, spill }),
      spill,
      ask: async (name, key) => String(await store.command([name, key], key)),
    }
    try {
      return await work(world, lossy)
    } finally {
      await lossy.plan.release()
      await Promise.all([world.far.close(), world.near.close()])
      await far.close()
      await lossy.close()
    }
  }

  /** The call as it is without misfortune: which commands it sends. Leaves its scripts known to the store. */
  async function look(act: Act): Promise<Seen[]> {
    return inWorld(LONG_MS, async (world, { plan }) => {
      const state = await act.prepare?.(world)
      plan.forget()
      const answer = await outcomeOf(act, world, state)
      expect(answer.error).toBeUndefined()
      const counts = new Map<string, number>()
      const sent = plan.seen.filter((args) => !ownWords.test(args[0] ?? ''))
      await act.overtake?.(world, state)
      if (act.effects) expect(await act.effects(world, state, answer.value)).toBe(1)
      // What happens after the answer, because of it, is of the call too.
      for (const args of [...sent, ...plan.seen.slice(sent.length).filter(([name]) => name?.startsWith('EVALSHA'))]) {
        const of = kindOf(args)
        counts.set(of, Math.max(counts.get(of) ?? 0, 1))
      }
      for (const args of sent) {
        const of = kindOf(args)
        counts.set(of, Math.min(OF_A_KIND, sent.filter((other) => kindOf(other) === of).length))
      }
      return [...counts].flatMap(([of, times]) => Array.from({ length: times }, (_, i) => ({ kind: of, nth: i + 1 })))
    })
  }

  /** One act, and one of its commands that meets one fault. */
  async function meet(act: Act, seen: Seen, fault: Fault): Promise<void> {
    await inWorld(fault === 'held' || !kind.startsWith('ioredis') ? SHORT_MS : LONG_MS, async (world, { plan }) => {
      const state = await soon(() => act.prepare?.(world))
      const matches: Matcher = (args) => kindOf(args) === seen.kind
      const met = plan.meet(fault, matches, seen.nth)
      // Three seconds are to the two of a host what this is to the bound here: longer than anybody waits.
      if (fault === 'held') void met.then(() => setTimeout(() => void plan.release(), 2 * SHORT_MS))
      let { error, value } = await outcomeOf(act, world, state)
      if (wasNotRun(error) && act.effects && !act.overtake) expect(await act.effects(world, state, undefined)).toBe(0)
      if (error !== undefined && !act.isOnce)
        await soon(async () => {
          const next = await outcomeOf(act, world, state)
          // What the first attempt has done, though nobody was told, cannot be done again.
          const isDone = act.done !== undefined && (next.error as { code?: string } | undefined)?.code === act.done
          ;({ error, value } = isDone ? { error: undefined, value: undefined } : next)
          expect(error).toBeUndefined()
        })
      await act.overtake?.(world, state)
      await plan.release()
      if (!act.effects) return
      const isOpen = act.isOnce && error !== undefined
      const effects = await act.effects(world, state, value)
      expect(isOpen ? Math.min(1, effects) : effects).toBe(isOpen ? effects : 1)
    })
  }

  return {
    look,

    /** Every command of the act with every fault. What fails says which. */
    async run(act: Act): Promise<void> {
      const seen = await inTurn(() => look(act))
      // What is no script is the same in every act: how a node starts, and readers.
      const all = seen.flatMap((one) => faultsOf(one).map((fault) => ({ one, fault })))
      await Promise.all(
        all.map(({ one, fault }) =>
          inTurn(() => meet(act, one, fault)).catch((cause) => {
            const what = `${one.kind.slice(0, 60).replaceAll('\n', ' ')} (${one.nth}) ${fault}`
            throw new Error(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause })
          }),
        ),
      )
    },
  }

  function faultsOf({ kind }: Seen): readonly Fault[] {
    if (kind.startsWith('EVALSHA')) return faults
    const rest = faults.filter((fault) => fault === 'lost' || !common.has(`${kind} ${fault}`))
    for (const fault of rest) common.add(`${kind} ${fault}`)
    return rest
  }
}

/** What became of a call. A refusal that is asked for is an answer. */
async function outcomeOf(act: Act, world: World, state: unknown): Promise<{ error?: unknown; value?: unknown }> {
  try {
    const value = await act.run(world, state)
    return act.refused ? { error: new Error(`not refused with ${act.refused}`) } : { value }
  } catch (error) {
    if (act.refused && (error as { code?: string }).code === act.refused) return {}
    return { error }
  }
}

/** The campaign over `kinds` of clients, all acts at once. */
export function describeLosses(
  acts: readonly Act[],
  kinds: readonly Kind[] = ['node-redis', 'ioredis'],
  faults = FAULTS,
): void {
  describeRedis('one lost, late or repeated reply', () => {
    for (const kind of kinds) {
      const campaign = createCampaign(kind, faults)
      for (const act of acts) {
        const what = `${act.call} promises${act.about ? ` (${act.about})` : ''}`
        it.concurrent(`leaves over ${kind} what ${what}`, () => campaign.run(act), 300_000)
      }
    }
  })
}
