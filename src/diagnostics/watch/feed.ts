/**
 * The frames of one watcher: a snapshot of each view, then changes. A slow watcher receives a new snapshot instead of a
 * queue.
 */
import { type Chunks, encodeFrame } from '../../http/respond.js'
import type { Frame, Listener, ViewFrame, ViewReader } from './reader.js'

/** The longest silence about a view in which nothing changes. */
const SYNC_MS = 10_000

const encoder = new TextEncoder()

/** What waits to be sent of one view: its snapshot, a reset and the snapshot, or one frame. */
type Pending = { kind: 'snapshot' | 'reset' } | { kind: 'frame'; frame: ViewFrame }

/** Why a feed ended, and after how many ms to come back; `null` for not at all. */
export interface FeedEnd {
  reason: 'forbidden' | 'scope_changed'
  retry: number | null
}

export interface Feed extends Chunks {
  /**
   * Ends the feed at once: pending frames are dropped, because the watcher may no longer see them, and an `end` frame
   * is sent.
   */
  end(why: FeedEnd): void
}

function concatenated(frames: readonly Frame[]): Frame {
  const all = new Uint8Array(frames.reduce((length, frame) => length + frame.length, 0))
  let at = 0
  for (const frame of frames) {
    all.set(frame, at)
    at += frame.length
  }
  return all
}

/**
 * @param names What the watcher calls the view of each reader.
 * @param onEnd Called once, when it is over.
 */
export function createFeed(names: ReadonlyMap<ViewReader, string>, principal: string, onEnd: () => void): Feed {
  const readers = [...names.keys()]
  const pending = new Map<ViewReader, Pending>(readers.map((reader) => [reader, { kind: 'snapshot' }]))
  const toldAt = new Map<ViewReader, number>()
  /** The frame that is sent at the end. */
  let last: Frame | undefined
  let isOver = false
  let wake = () => {}

  const listener: Listener = {
    principal,
    changed(reader, frame) {
      const waits = pending.get(reader)
      // What waits is of an earlier state: nothing is queued behind it.
      if (waits?.kind === 'frame') pending.set(reader, { kind: 'reset' })
      else if (!waits) pending.set(reader, { kind: 'frame', frame })
      wake()
    },
    unchanged(reader) {
      if (pending.has(reader) || performance.now() - (toldAt.get(reader) ?? 0) < SYNC_MS) return
      pending.set(reader, { kind: 'frame', frame: reader.sync })
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

  /** Everything that waits, as one chunk: one frame alone is the bytes that all are sent. */
  function take(): Frame {
    const frames: Frame[] = []
    for (const [reader, what] of pending) {
      const name = names.get(reader) as string
      if (what.kind === 'frame') frames.push(what.frame.as(name))
      else if (what.kind === 'reset') frames.push(reader.reset.as(name), reader.snapshot.as(name))
      else frames.push(reader.snapshot.as(name))
      toldAt.set(reader, performance.now())
    }
    pending.clear()
    return frames.length === 1 ? (frames[0] as Frame) : concatenated(frames)
  }

  return {
    end(why) {
      if (isOver) return
      last = encoder.encode(encodeFrame({ event: 'end', data: why }))
      leave()
    },
    async next() {
      while (!isOver && pending.size === 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (!isOver) return { done: false, value: take() }
      const value = last
      last = undefined
      return value ? { done: false, value } : { done: true, value }
    },
    async return() {
      last = undefined
      leave()
      return { done: true, value: undefined }
    },
  }
}
