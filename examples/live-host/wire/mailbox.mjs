/** A client's mailbox: commands leave it as server-sent events, one frame for each that the connection can take. */

const encode = (event, data) => new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)

/**
 * Attaches the session to the dispatcher and answers with its stream, which ends when the client goes away, when
 * `signal` aborts, or when a newer mailbox of the session opens.
 */
export async function openMailbox({ dispatcher, session, signal }) {
  session.closeMailbox?.()
  // Keyed by command, so that retries of an unread command do not accumulate.
  const waiting = new Map()
  const closing = new AbortController()
  const closed = AbortSignal.any([signal, closing.signal])
  let wake = () => {}

  const waiter = await dispatcher.attach(session, (command, { signal: until }) => {
    const frame = encode('command', command)
    return new Promise((handedOver, reject) => {
      waiting.get(command.command_id)?.reject(new Error('attempted again'))
      waiting.set(command.command_id, { frame, handedOver, reject })
      until.addEventListener('abort', () => drop(command.command_id, frame), { once: true })
      wake()
    })
  })

  // The command was cancelled or has expired: notifies the client, unless it never received the command.
  function drop(command_id, frame) {
    if (closed.aborted) return
    if (waiting.get(command_id)?.frame !== frame) {
      const ignore = () => {}
      waiting.set(`cancel ${command_id}`, {
        frame: encode('cancel', { command_id }),
        handedOver: ignore,
        reject: ignore,
      })
      return wake()
    }
    waiting.get(command_id).reject(new Error('no longer wanted'))
    waiting.delete(command_id)
  }

  closed.addEventListener('abort', () => {
    for (const { reject } of waiting.values()) reject(new Error('the connection has ended'))
    waiting.clear()
    waiter.detach()
    wake()
  })
  session.closeMailbox = () => closing.abort()

  const stream = new ReadableStream(
    {
      // A frame is delivered when the connection pulls it: a reader that stops gets none.
      async pull(controller) {
        while (waiting.size === 0 && !closed.aborted) await new Promise((resolve) => (wake = resolve))
        if (closed.aborted) return controller.close()
        const [[command_id, { frame, handedOver }]] = waiting
        waiting.delete(command_id)
        controller.enqueue(frame)
        handedOver()
      },
      cancel: () => closing.abort(),
    },
    { highWaterMark: 0 },
  )
  return new Response(stream, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
}
