/** How a node of the dispatcher runs its scripts, and what it does with all that they answer beside the answer. */
import type { CounterKind, CounterName } from '../../contract/delivery-words.js'
import { shardOf } from '../store/keys.js'
import { runScript, type Script } from '../store/script.js'
import type { Store } from '../store/store.js'
import type { NodeArguments, NodeReply } from './node-script.js'
import { RELEASE } from './scripts.js'

type Counters = Record<CounterKind, Record<string, number>>

interface DeliveryRunOptions {
  store: Store
  /** This life of this node: what a former one of the same name claimed is not ours. */
  incarnation: string
  retentionMs: number
  maxRetained: number
  ackTimeoutMs: number
  /** What this node is told about its own mailboxes and attempts. */
  onNotice: (notice: string, shard: number) => void
  /** Something was counted. */
  onCount: () => void
}

export type DeliveryRun = ReturnType<typeof createDeliveryRun>

export function createDeliveryRun(options: DeliveryRunOptions) {
  const { store, incarnation, retentionMs, maxRetained, ackTimeoutMs, onNotice, onCount } = options
  const counters: Counters = { recovery: {}, outcome: {}, acknowledgement: {}, other: {} }

  function count<Kind extends CounterKind>(kind: Kind, name: CounterName<Kind>) {
    const named: Record<string, number> = counters[kind]
    named[name] = (named[name] ?? 0) + 1
    onCount()
  }

  const node = { incarnation, retention_ms: retentionMs, max_kept: maxRetained, patience_ms: ackTimeoutMs }

  /** Runs `script` in `shard`. @throws Refusal `unavailable`; then it may have run or not. */
  async function run<Given extends object, Answer>(
    script: Script<NodeArguments & Given, NodeReply<Answer>>,
    shard: number,
    given: Given,
  ): Promise<{ now: number; answer: Answer }> {
    const { now, answer, notices, counted, released } = await runScript(store, script, shard, { ...node, ...given })
    for (const entry of counted) {
      const [kind, name] = entry.split(' ') as [CounterKind, CounterName<CounterKind>]
      count(kind, name)
    }
    for (const notice of notices) onNotice(notice, shard)
    // A reservation in another shard than its command's. If this does not come through, its deadline frees it.
    await Promise.all(
      released.map(({ shard: to, scope, ref }) =>
        run(RELEASE, to, { scope, ref }).catch((error) => store.onError(error)),
      ),
    )
    return { now, answer }
  }

  return {
    counters,
    count,
    run,
    /** Runs `script` in the shard of the user's records. */
    async runFor<Given extends object, Answer>(
      script: Script<NodeArguments & Given, NodeReply<Answer>>,
      userId: string,
      given: Given,
    ): Promise<Answer> {
      return (await run(script, shardOf(userId, await store.claimShards()), given)).answer
    },
  }
}
