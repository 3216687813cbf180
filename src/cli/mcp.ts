/** `relayscope mcp`: the tools for agents over stdio, as programs start them that an agent lives in. */

import { Readable } from 'node:stream'
import type { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { withShortName } from '../mcp/options.js'
import { parse, UsageError } from './arguments.js'
import { readKey, readTarget } from './reader/reader.js'
import { loadStdio } from './sdk.js'
import { print } from './text/table.js'

// One conversation over stdio: its transport, whose input may end while answers are still on their way.

type Message = Parameters<NonNullable<StdioServerTransport['onmessage']>>[0]

/** What stays open for as long as the conversation does. */
const ENDLESS = 'subscriptions/listen'

/**
 * `stdin` as a stream without an end: the transport of the SDK would close at it, and with it what is under way. The last line is
 * one where it does not end in a line break, too.
 */
export function withoutEnd(stdin: NodeJS.ReadableStream): { input: Readable; leave(): void } {
  const input = new Readable({ read() {} })
  const push = (chunk: unknown) => void input.push(chunk)
  const pushLast = () => push('\n')
  stdin.on('data', push)
  stdin.once('end', pushLast)
  const leave = () => {
    stdin.off('data', push)
    stdin.off('end', pushLast)
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
    // Messages that have arrived are passed on by then.
    await new Promise((resolve) => setImmediate(resolve))
    if (open.size > 0)
      await new Promise<void>((resolve) => {
        drained = resolve
      })
  }
}

export const MCP_HELP = `relayscope mcp: the diagnostics of a router for an agent, read-only, over stdio

  npx -p relayscope -p @modelcontextprotocol/server relayscope mcp --url http://127.0.0.1:8080/ops/diagnostics

  --url URL        where the router is, its prefix included
  --key-file FILE  the admin key (default SERVICE_ADMIN_KEY)
  --payloads       show payloads of messages too

Exit codes: 0 ended, by the end of its input or a signal; 1 a message was too long; 2 wrong usage.
`

/** Of one message; what is longer ends the conversation. */
const MESSAGE_BYTES = 262_144
/** For what is under way when input ends: longer than a question takes to be given up. */
const LAST_ANSWERS_MS = 12_000

const OPTIONS = {
  url: { type: 'string' },
  'key-file': { type: 'string' },
  payloads: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const

interface Io {
  readonly env: Record<string, string | undefined>
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/**
 * Logs why no router answers, each reason once. Only the code is logged, because an error message may contain an
 * address or a header.
 */
function createLossNote(stderr: NodeJS.WriteStream) {
  const warned = new Set<string>()
  return (error: unknown): void => {
    const { cause } = (error ?? {}) as { cause?: { code?: unknown } }
    const code = typeof cause?.code === 'string' ? cause.code : 'no reason given'
    if (warned.has(code)) return
    warned.add(code)
    print(stderr, `relayscope: no answer at --url: ${code}`)
  }
}

/** 0, once `work` is done or that time has passed. */
async function within(work: Promise<void>, ms: number): Promise<number> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late])
  clearTimeout(timer)
  return 0
}

/** @returns the exit code, once it has ended. @throws UsageError for what cannot be asked. */
export async function mcp(args: readonly string[], { env, stdin, stdout, stderr }: Io): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(stdout, MCP_HELP.trimEnd())
    return 0
  }
  if (positionals.length > 0) throw new UsageError('pass the URL as --url')
  const url = readTarget(values.url)
  const key = await readKey(values['key-file'], env)
  const { createStdioTools, serveStdio, StdioServerTransport } = await loadStdio()
  const { input, leave } = withoutEnd(stdin)
  const transport = new StdioServerTransport(input, undefined, { maxBufferSize: MESSAGE_BYTES })
  const close = transport.close.bind(transport)
  const inputEnded = new Promise<void>((resolve) => {
    for (const name of ['end', 'close', 'error']) stdin.once(name, () => resolve())
  })
  const ended = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(0))
    // The transport closed before its input ended: no other event reports that.
    transport.close = async () => {
      await close()
      resolve(1)
    }
  })
  const tools = createStdioTools({ url, key, payloads: values.payloads, lost: createLossNote(stderr) })
  const serving = serveStdio(tools, { transport })
  const answered = watchAnswers(transport)
  const code = await Promise.race([ended, inputEnded.then(() => within(answered(), LAST_ANSWERS_MS))])
  leave()
  await serving.close()
  if (code !== 0) print(stderr, `relayscope: ended at a message of more than ${MESSAGE_BYTES} bytes`)
  return code
}
