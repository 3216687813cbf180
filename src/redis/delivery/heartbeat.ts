/** What a node says of itself in the list of nodes: soon after a change, with every pass, and once more at its end. */

import { createAlarm } from '../../async/timer.js'
import { runScript } from '../store/script.js'
import type { Store } from '../store/store.js'
import { keptMs, type NodeRecord } from './nodes.js'
import { BEAT } from './scripts.js'

/** Changes within this time share one heartbeat. */
const QUIET_MS = 50

/** @param record what the node says now. */
export function createHeartbeat(store: Store, nodeId: string, record: () => NodeRecord) {
  const alarm = createAlarm(() => void publish().catch(() => {}))
  let sentAt = Number.NEGATIVE_INFINITY
  let under: Promise<void> | undefined
  /** The next one, which has not begun. */
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
    const said = closed ? { ...record(), is_closed: true } : record()
    await runScript(store, BEAT, 0, { id: nodeId, record: JSON.stringify(said), kept_ms: keptMs(said) })
  }

  /**
   * One at a time: a heartbeat that is overtaken by another would show an older truth. One that has not begun stands for all
   * that are asked for meanwhile.
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
    publish,
    /** The first heartbeat is written, or has failed. */
    first,

    /** Something has changed. */
    changed() {
      if (!closed) alarm.advance(Math.max(0, sentAt + QUIET_MS - performance.now()))
    },

    async close(): Promise<void> {
      closed = true
      alarm.clear()
      await publish().catch(() => {})
    },
  }
}
