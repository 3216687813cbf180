/** Writes the entry of this node in the list of nodes: soon after a change, with every pass, and on close. */
import { createAlarm } from '../../internal/async/timer.js'
import { ignoreReply } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import type { Store } from '../store/store.js'
import { keptMs, type NodeRecord } from './nodes.js'
import { scripts } from './nodes.lua'

// The script that writes the entry of a node in the list of nodes. All steps on commands run through library.ts.

/** Maximum number of listed nodes. A deployment has tens; more means that a host generates a new node id at each start. */
const NODES_MAX = 1_000

export const BEAT = defineScript(
  'delivery.beat',
  { args: ['id', 'record', 'kept_ms'], constants: { NODES_MAX }, answer: ignoreReply },
  scripts.beat,
)

/** Changes within this time share one heartbeat. */
const QUIET_MS = 50

export function createHeartbeat(store: Store, nodeId: string) {
  let record: (() => NodeRecord) | undefined
  const alarm = createAlarm(() => void publish().catch(() => {}))
  let sentAt = Number.NEGATIVE_INFINITY
  let under: Promise<void> | undefined
  /** The next heartbeat, which has not been sent yet. */
  let waiting: Promise<void> | undefined
  let closed = false
  let isFirst = () => {}
  const first = new Promise<void>((resolve) => {
    isFirst = resolve
  })

  async function send(): Promise<void> {
    waiting = undefined
    alarm.clear()
    sentAt = performance.now()
    await store.joinShards()
    const state = record?.()
    if (!state) return
    const report = closed ? { ...state, is_closed: true } : state
    await runScript(store, BEAT, 0, { id: nodeId, record: JSON.stringify(report), kept_ms: keptMs(report) })
  }

  /**
   * Sends a heartbeat, one at a time: if one overtook another, the older state would be stored last. Calls that come before the
   * next heartbeat is sent share it.
   */
  function publish(): Promise<void> {
    if (waiting) return waiting
    const next = (under ?? Promise.resolve()).then(send)
    const write: Promise<void> = next
      .catch((error) => store.onError(error))
      .then(() => {
        isFirst()
        if (under === write) under = undefined
      })
    under = write
    waiting = next
    return next
  }

  return {
    /** Sends heartbeats from now on. @param current Returns the current state of the node. */
    start(current: () => NodeRecord) {
      record = current
    },
    publish,
    /** Resolves when the first heartbeat was written or has failed. */
    first,

    /** Schedules a heartbeat after a change of the state. */
    changed() {
      if (record && !closed) alarm.advance(Math.max(0, sentAt + QUIET_MS - performance.now()))
    },

    async close(): Promise<void> {
      closed = true
      alarm.clear()
      await publish().catch(() => {})
    },
  }
}
