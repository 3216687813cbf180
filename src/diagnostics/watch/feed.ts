/** What one watcher is sent: a snapshot of each view, then what changes; whoever is slow begins anew instead of queueing. */
import { encodeFrame } from '../../http/event-stream.js'
import type { Chunks } from '../../http/respond.js'
import type { Listener, ViewReader } from './reader.js'

/** The longest silence about a view in which nothing changes and somebody looks. */
const SYNC_MS = 10_000

const encoder = new TextEncoder()

/** What waits to be sent of one view: its snapshot, a reset and the snapshot, or one frame. */
type Pending = { kind: 'snapshot' | 'reset' } | { kind: 'frame'; text: string }

/** Why a feed ended, and after how many ms to come back; `null` for not at all. */
export interface FeedEnd {
  reason: 'forbidden' | 'scope_changed'
  retry: number | null
}

export interface Feed extends Chunks {
  /** Ends it after what says so. */
  end(why: FeedEnd): void
}

/** @param onEnd Called once, when nobody takes any more. */
export function createFeed(readers: readonly ViewReader[], onEnd: () => void): Feed {
  const pending = new Map<ViewReader, Pending>(readers.map((reader) => [reader, { kind: 'snapshot' }]))
  const toldAt = new Map<ViewReader, number>()
  let ending: FeedEnd | undefined
  let isOver = false
  let wake = () => {}

  const listener: Listener = {
    changed(reader, text) {
      const waits = pending.get(reader)
      // What waits is of an earlier state: nothing is queued behind it.
      if (waits?.kind === 'frame') pending.set(reader, { kind: 'reset' })
      else if (!waits) pending.set(reader, { kind: 'frame', text })
      wake()
    },
    unchanged(reader) {
      if (pending.has(reader) || performance.now() - (toldAt.get(reader) ?? 0) < SYNC_MS) return
      pending.set(reader, { kind: 'frame', text: reader.sync })
      wake()
    },
  }
  for (const reader of readers) reader.add(listener)

  function leave(): void {
    if (isOver) return
    isOver = true
    for (const reader of readers) reader.remove(listener)
    onEnd()
    wake()
  }

  /** Everything that waits, as one chunk. */
  function take(): string {
    let text = ''
    for (const [reader, what] of pending) {
      text += what.kind === 'frame' ? what.text : `${what.kind === 'reset' ? reader.reset : ''}${reader.snapshot}`
      toldAt.set(reader, performance.now())
    }
    pending.clear()
    if (ending) text += encodeFrame({ event: 'end', data: ending })
    return text
  }

  return {
    end(why) {
      ending ??= why
      wake()
    },
    async next() {
      while (!isOver && pending.size === 0 && !ending)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (isOver) return { done: true, value: undefined }
      const value = encoder.encode(take())
      if (ending) leave()
      return { done: false, value }
    },
    async return() {
      leave()
      return { done: true, value: undefined }
    },
  }
}
