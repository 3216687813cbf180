/** One application's stream: its commands as frames. A frame counts as delivered when the reader takes it. */
import { onAbort } from '../../internal/async/abort.js'
import {
  type ApplicationEndReason,
  type ApplicationReadyFrame,
  CommandFrame,
} from '../../internal/contract/applications.js'
import type { Deliver } from '../../internal/contract/delivery-dispatch.js'
import { type Chunks, encodeFrame, HEARTBEAT_FRAME } from '../../internal/http/respond.js'
import { Refusal } from '../../internal/refusal.js'

// The dispatcher delivers a few commands of a client at a time; more than this wait only for a reader that has stopped.
const WAITING_MAX = 1_000

/** How long a client waits before it reconnects, in milliseconds. */
const RETRY_MS = 1_000
// Spreads the reconnects after a shutdown over this much more time.
const SHUTDOWN_JITTER_MS = 5_000

type Bytes = Uint8Array<ArrayBuffer>
type Taken = IteratorResult<Bytes, undefined>
const DONE: Taken = { done: true, value: undefined }

const encoder = new TextEncoder()
const HEARTBEAT = encoder.encode(HEARTBEAT_FRAME)

interface Waiting {
  bytes: Bytes
  taken(): void
  dropped(error: unknown): void
}

/** A stream that is being read. */
export interface CommandStream {
  /** Read by one reader, one frame at a time. */
  frames: Chunks
  /** Passed to the dispatcher. */
  deliver: Deliver
  /** Whether the reader waits for a frame. One that has stopped does not. */
  readonly isRead: boolean
  /** Sets the first frame. */
  start(ready: ApplicationReadyFrame): void
  /** Writes a comment if the reader waits. */
  beat(): void
  /** Writes the reason and ends the stream. */
  end(reason: ApplicationEndReason): void
  /** Ends the stream without a last frame. */
  leave(): void
}

const ignore = () => {}

/** The frames that wait for the reader, by command id, so that another attempt replaces one that was not taken. */
function createQueue(wake: () => void) {
  const waiting = new Map<string, Waiting>()
  return {
    add(key: string, one: Waiting): void {
      const former = waiting.get(key)
      former?.dropped(new Refusal('cancelled'))
      if (former || waiting.size < WAITING_MAX) waiting.set(key, one)
      else one.dropped(new Refusal('capacity_exceeded'))
      wake()
    },
    /** Removes a frame that was not taken. @returns whether it was there. */
    withdraw: (key: string, one: Waiting): boolean => waiting.get(key) === one && waiting.delete(key),
    /** Takes the first frame, if any. */
    take(): Bytes | undefined {
      const first = waiting.entries().next().value
      if (first === undefined) return undefined
      const [key, { bytes, taken }] = first
      waiting.delete(key)
      taken()
      return bytes
    },
    clear(): void {
      for (const { dropped } of waiting.values()) dropped(new Refusal('closed'))
      waiting.clear()
    },
  }
}

/** Returns the function for the dispatcher: it resolves when the reader has taken the command. */
function createDeliver(queue: ReturnType<typeof createQueue>, isOver: () => boolean): Deliver {
  return (command, { signal }) =>
    new Promise((resolve, reject) => {
      if (isOver()) return reject(new Refusal('closed'))
      if (signal.aborted) return reject(new Refusal('cancelled'))
      const { command_id } = command
      const data = CommandFrame.parse({ ...command, payload: command.payload ?? null })
      const bytes = encoder.encode(encodeFrame({ event: 'command', data }))
      const one: Waiting = { bytes, taken: resolve, dropped: reject }
      queue.add(command_id, one)
      onAbort(signal, () => {
        if (isOver()) return
        if (queue.withdraw(command_id, one)) return reject(new Refusal('cancelled'))
        const cancel = encoder.encode(encodeFrame({ event: 'cancel', data: { command_id } }))
        // An id contains no line break, so no command has this key.
        queue.add(`cancel\n${command_id}`, { bytes: cancel, taken: ignore, dropped: ignore })
      })
    })
}

/** `onEnd` is called once, when the stream has ended for whatever reason. */
export function createCommandStream(onEnd: (reason: ApplicationEndReason | null) => void): CommandStream {
  let taker: ((taken: Taken) => void) | undefined
  let opening: Bytes | undefined
  let farewell: Bytes | undefined
  let over = false
  const queue = createQueue(flush)

  const give = (taken: Taken): void => {
    const waitingReader = taker
    taker = undefined
    waitingReader?.(taken)
  }

  /** Returns the next frame if there is one. */
  function next(): Taken | undefined {
    const last = farewell ?? opening
    if (last !== undefined) {
      farewell = opening = undefined
      return { done: false, value: last }
    }
    if (over) return DONE
    const value = queue.take()
    return value && { done: false, value }
  }

  function flush(): void {
    if (!taker) return
    const taken = next()
    if (taken) give(taken)
  }

  function release(reason: ApplicationEndReason | null): void {
    over = true
    opening = undefined
    queue.clear()
    onEnd(reason)
  }

  function leave(): void {
    if (!over) release(null)
    farewell = undefined
    give(DONE)
  }

  return {
    frames: {
      next: () =>
        new Promise((resolve) => {
          taker = resolve
          flush()
        }),
      async return() {
        leave()
        return DONE
      },
    },
    deliver: createDeliver(queue, () => over),
    get isRead() {
      return taker !== undefined
    },
    start(ready) {
      if (over) return
      opening = encoder.encode(encodeFrame({ event: 'ready', retry: RETRY_MS, data: ready }))
      flush()
    },
    beat() {
      if (!over && taker) give({ done: false, value: HEARTBEAT })
    },
    end(reason) {
      if (over) return
      release(reason)
      const retry = reason === 'shutdown' ? RETRY_MS + Math.floor(Math.random() * SHUTDOWN_JITTER_MS) : undefined
      farewell = encoder.encode(encodeFrame({ event: 'end', data: { reason }, retry }))
      flush()
    },
    leave,
  }
}
