/** How a node of the dispatcher runs its scripts, and what it does with all that they answer beside the answers. */
import type { CounterKind, CounterName } from '../../contract/delivery.js'
import { emptyHistograms, measure, reportedTimes } from '../../contract/delivery-rules.js'
import { utf8Length } from '../../contract/ids.js'
import { shardOf } from '../store/keys.js'
import { toScriptError } from '../store/reply.js'
import { runScript, toUnavailable } from '../store/script.js'
import type { Store } from '../store/store.js'
import type { DeliveryScript, NodeArguments, NodeReply } from './node-script.js'
import type { ClaimReply } from './script-claims.js'
import { RELEASE } from './scripts.js'

type Counters = Record<CounterKind, Record<string, number>>

/** Calls that run together at most: less than a millisecond in which the store serves nobody else. */
const CALLS_MAX = 32
/** Bytes of them, payloads above all. */
const BYTES_MAX = 262_144
/** Characters of a call that are not counted in bytes. */
const SHORT = BYTES_MAX / CALLS_MAX / 4

interface DeliveryRunOptions {
  store: Store
  /** This life of this node: what a former one of the same name claimed is not ours. */
  incarnation: string
  nodeId: string
  retentionMs: number
  maxRetained: number
  ackTimeoutMs: number
  maxTracked: number
  maxTrackedPerUser: number
  /** What this node is told about its own mailboxes and attempts. */
  onNotice: (notice: string, shard: number) => void
  /** Called with the time of each reply of the store, before what it counts. */
  onTime: (now: number) => void
  /** Something was counted. */
  onCount: (kind: CounterKind, name: string, times: number) => void
}

export type DeliveryRun = ReturnType<typeof createDeliveryRun>

type AnyScript = DeliveryScript<never, unknown>

interface Answered<Answer> {
  now: number
  answer: Answer
}

type Claimed = (answer: ClaimReply) => void

interface Call {
  text: string
  resolve(answered: Answered<unknown>): void
  claimed: Claimed | undefined
  reject(error: unknown): void
}

/** Calls of one script in one shard that wait for the end of this turn. */
interface Batch {
  calls: Call[]
  bytes: number
}

const nodeArguments = (options: DeliveryRunOptions): NodeArguments => ({
  incarnation: options.incarnation,
  node: options.nodeId,
  retention_ms: options.retentionMs,
  max_kept: options.maxRetained,
  patience_ms: options.ackTimeoutMs,
  max_tracked: options.maxTracked,
  max_per_user: options.maxTrackedPerUser,
})

function createCounters(onCount: DeliveryRunOptions['onCount']) {
  const counters: Counters = { recovery: {}, outcome: {}, acknowledgement: {}, other: {} }
  function count<Kind extends CounterKind>(kind: Kind, name: CounterName<Kind>, times = 1) {
    const named: Record<string, number> = counters[kind]
    named[name] = (named[name] ?? 0) + times
    onCount(kind, name, times)
  }
  const latency = emptyHistograms()
  return {
    counters,
    latency,
    count,
    /** Counts the entries of a reply: `took` has the times of commands that ended. */
    addAll(counted: NodeReply['counted']) {
      for (const [entry, times] of counted) {
        const [kind = '', ...rest] = entry.split(' ')
        if (kind === 'took') measure(latency, reportedTimes(rest), times)
        else count(kind as CounterKind, rest[0] as CounterName<CounterKind>, times)
      }
    },
  }
}

const answerOf = (script: AnyScript, reply: NodeReply, call: number): Answered<unknown> => ({
  now: reply.now,
  answer: script.answerOf(reply.answers[call] ?? null),
})

export function createDeliveryRun(options: DeliveryRunOptions) {
  const { store, onNotice, onTime, onCount } = options
  const { addAll, ...counts } = createCounters(onCount)
  const open = new Map<AnyScript, Map<number, Batch>>()

  const node = nodeArguments(options)

  function apply({ now, counted, notices }: NodeReply, shard: number) {
    onTime(now)
    addAll(counted)
    for (const notice of notices) onNotice(notice, shard)
  }

  /** Reservations in another shard than their command's. If this does not come through, their deadlines free them. */
  async function release(all: NodeReply['released']) {
    await Promise.all(
      all.map(({ shard, scope, ref }) =>
        run(RELEASE, shard, { scope, ref, attempt: '' }).catch((error) => store.onError(error)),
      ),
    )
  }

  async function send(script: AnyScript, shard: number, { calls }: Batch) {
    try {
      const reply = await runScript(store, script, shard, { ...node, given: calls.map(({ text }) => text) })
      apply(reply, shard)
      for (const [n, answer] of reply.claims) calls[n - 1]?.claimed?.(answer)
      for (const [i, { resolve, reject }] of calls.entries()) {
        const failure = reply.failed.get(i + 1)
        const answered = () => resolve(answerOf(script, reply, i))
        if (failure !== undefined) reject(toUnavailable(store, toScriptError(failure)))
        else if (reply.released.length === 0) answered()
        else void release(reply.released.filter(({ call }) => call === i + 1)).then(answered)
      }
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }

  function close(script: AnyScript, shard: number) {
    const batch = open.get(script)?.get(shard)
    open.get(script)?.delete(shard)
    if (batch) void send(script, shard, batch)
  }

  function batchOf(script: AnyScript, shard: number, bytes: number): Batch {
    const byShard = open.get(script) ?? new Map<number, Batch>()
    open.set(script, byShard)
    const known = byShard.get(shard)
    if (known && known.bytes + bytes <= BYTES_MAX) return known
    if (known) close(script, shard)
    const batch = { calls: [], bytes: 0 }
    byShard.set(shard, batch)
    queueMicrotask(() => {
      if (byShard.get(shard) === batch) close(script, shard)
    })
    return batch
  }

  /**
   * Runs `script` in `shard`, together with the other calls of this turn. `claimed` hears what a claim that it brings has come to,
   * before whatever the call waits for in other shards. @throws Refusal `unavailable`; then it may have
   * run or not.
   */
  function run<Given, Answer>(
    script: DeliveryScript<Given, Answer>,
    shard: number,
    given: Given,
    claimed?: Claimed,
  ): Promise<Answered<Answer>> {
    const text = script.callOf(given)
    // So many short ones never come to the bound.
    const bytes = text.length < SHORT ? text.length : utf8Length(text)
    const batch = batchOf(script as AnyScript, shard, bytes)
    batch.bytes += bytes
    return new Promise((resolve, reject) => {
      batch.calls.push({ text, resolve: resolve as Call['resolve'], claimed, reject })
      if (batch.calls.length === CALLS_MAX) close(script as AnyScript, shard)
    })
  }

  return {
    ...counts,
    run,
    /** Runs `script` in the shard of the user's records. */
    async runFor<Given, Answer>(
      script: DeliveryScript<Given, Answer>,
      userId: string,
      given: Given,
      claimed?: Claimed,
    ) {
      return run(script, shardOf(userId, await store.claimShards()), given, claimed)
    },
  }
}
