/** One conversation over stdio: its transport, whose input may end while answers are still on their way. */
import { Readable } from 'node:stream'
import type { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { withShortName } from '../mcp/message.js'

type Message = Parameters<NonNullable<StdioServerTransport['onmessage']>>[0]

/** What stays open for as long as the conversation does. */
const ENDLESS = 'subscriptions/listen'

/**
 * `stdin` as a stream without an end: the transport of the SDK would close at it, and with it what is under way. The last line is
 * one where it does not end in a line break, too.
 */
export function withoutEnd(stdin: NodeJS.ReadableStream): { input: Readable; leave(): void } {
  const input = new Readable({ read() {} })
  const hand = (chunk: unknown) => void input.push(chunk)
  const handLast = () => hand('\n')
  stdin.on('data', hand)
  stdin.once('end', handLast)
  const leave = () => {
    stdin.off('data', hand)
    stdin.off('end', handLast)
    stdin.pause()
  }
  return { input, leave }
}

/**
 * Counts what is asked on `transport` and not answered, once a server has been connected to it.
 *
 * @returns resolves at the end of what has been asked by then.
 */
export function watchAnswers(transport: StdioServerTransport): () => Promise<void> {
  const open = new Set<unknown>()
  let drained = () => {}
  const settle = (id: unknown) => {
    open.delete(id)
    if (open.size === 0) drained()
  }
  const [deliver, send] = [transport.onmessage, transport.send.bind(transport)]
  transport.onmessage = (message: Message) => {
    if ('method' in message && 'id' in message && message.method !== ENDLESS) open.add(message.id)
    // Who takes a question back gets no answer.
    if ('method' in message && message.method === 'notifications/cancelled') settle(message.params?.requestId)
    deliver?.(withShortName(message))
  }
  transport.send = async (message) => {
    await send(message)
    if (!('method' in message) && 'id' in message) settle(message.id)
  }
  return async () => {
    // What has come is handed on by then.
    await new Promise((resolve) => setImmediate(resolve))
    if (open.size > 0)
      await new Promise<void>((resolve) => {
        drained = resolve
      })
  }
}
