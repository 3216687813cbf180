/** The tools for agents under test over a world of plain data, and the official client that asks them. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { createMcp, type McpOptions } from '../../src/mcp/index.js'
import { COMMAND } from '../cli/process.js'
import { createSubject, KEY } from '../diagnostics/subject.js'

/** Both protocols that the SDK serves. */
export const ERAS = ['auto', 'legacy'] as const
export type Era = (typeof ERAS)[number]

export const subject = (options: McpOptions = {}) =>
  createMcp({ ...('url' in options ? {} : { router: createSubject() }), onError: null, ...options })

const createClient = (mode: Era) => new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })

async function opened(client: Client, transport: Parameters<Client['connect']>[0]): Promise<Client> {
  onTestFinished(() => client.close())
  await client.connect(transport)
  return client
}

/** A client of what listens at `url`. */
export const connectHttp = (
  url: string,
  mode: Era = 'auto',
  headers: Record<string, string> = { 'x-admin-key': KEY },
) => opened(createClient(mode), new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))

/** The tools on a port of their own, through the adapter of Node. @returns their address. */
export async function serve(options: McpOptions = {}): Promise<string> {
  const server = await startNodeServer(subject(options))
  onTestFinished(async () => void (await server.close()))
  return `${server.url}/mcp`
}

/** A client of the command, which is built already. */
export const connectStdio = (args: readonly string[], env: Record<string, string> = {}, mode: Era = 'auto') =>
  opened(
    createClient(mode),
    new StdioClientTransport({
      command: process.execPath,
      args: [COMMAND, 'mcp', ...args],
      env: { PATH: process.env.PATH ?? '', ...env },
      stderr: 'pipe',
    }),
  )

/** Serves `router` on a port of its own. @returns its address. */
export async function serveRouter(router = createSubject()): Promise<string> {
  const server = await startNodeServer(router)
  onTestFinished(async () => void (await server.close()))
  return server.url + router.prefix
}

type Json = Record<string, unknown>

/** One answer of a tool. */
export interface Answer {
  text: string
  /** What no answer of an error has. */
  content: (Json & { complete: boolean; notes: string[]; untrusted: never }) | undefined
  isError: boolean
}

export async function call(client: Client, name: string, given: Json = {}): Promise<Answer> {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: given })
  const [first] = content
  if (content.length !== 1 || first?.type !== 'text') throw new Error('an answer is one text')
  return { text: first.text, content: structuredContent as Answer['content'], isError: isError === true }
}

/** One message to the handler itself, as a client of 2025 sends it. */
export const message = (body: unknown, headers: Record<string, string> = {}, init: RequestInit = {}) =>
  new Request('http://localhost/mcp', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-admin-key': KEY,
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  })

export const callMessage = (name: string, given: Json = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
})

/** What a tool of `options` answers, asked in this process. */
export async function fetchRoute(options: McpOptions, name: string, given: Json = {}): Promise<Answer> {
  const response = await subject(options)(message(callMessage(name, given)))
  const data = /^data: (.*)$/m.exec(await response.text())?.[1] ?? ''
  const { result, error } = JSON.parse(data)
  if (error) return { text: error.message, content: undefined, isError: true }
  return { text: result.content[0].text, content: result.structuredContent, isError: result.isError === true }
}

/** The records within the fence of `text`, by lines. */
export function fenced(text: string): Json[] {
  const [, inner = ''] = /^<untrusted-data>\n(?:([\s\S]*)\n)?<\/untrusted-data>$/m.exec(text) ?? []
  return inner === '' ? [] : inner.split('\n').map((line) => JSON.parse(line))
}
