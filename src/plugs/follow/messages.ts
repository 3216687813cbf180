/** What a message says of a call: the protocols that followers read, JSON-RPC among them. */
import type { CallDirection } from '../../internal/contract/rpc.js'
import type { CallId, CallLink } from './call-records.js'
import type { ObservedCallTable } from './calls.js'

/** What one message says. */
export interface CallMessage {
  /**
   * `request` asks for a reply; `reply` is it; `progress`: the request is worked on; `cancel`: its sender does not wait
   * any longer; `notification` asks for no reply.
   */
  readonly kind: 'request' | 'reply' | 'progress' | 'cancel' | 'notification'
  /** The id that a request and its reply have in common. `1` and `'1'` are two. A notification needs none. */
  readonly id?: CallId | undefined
  /** The name of a request or notification, cut at 64 characters. @default 'unknown' */
  readonly action?: string | undefined
  /** Whether a reply says that the call succeeded. @default true */
  readonly ok?: boolean | undefined
  /** The W3C `traceparent` of a request; an invalid one is ignored. @default none */
  readonly trace?: unknown
}

/** How messages are read. */
export interface CallProtocol {
  /**
   * Returns what a message says of a call; several for a batch, `undefined` for none. An error counts as none; the first
   * is passed to `onError`.
   *
   * @param text The text of the message, cut at 65,536 characters.
   * @param direction Where the message goes.
   */
  read(text: string, direction: CallDirection): CallMessage | readonly CallMessage[] | undefined
}

/** Length at which the text of a message is cut. */
export const TEXT_MAX = 65_536

const OPPOSITE = { to_client: 'to_server', to_server: 'to_client' } as const

/** Records what `message`, which goes in `direction`, says. */
export function observe(
  table: ObservedCallTable,
  link: CallLink,
  message: CallMessage,
  direction: CallDirection,
): void {
  const { kind, id, action = 'unknown', ok = true, trace } = message
  if (kind === 'notification') table.notify(link, direction, action)
  else if (id === undefined) return
  else if (kind === 'request') table.request(link, direction, id, action, trace)
  else if (kind === 'cancel') table.cancel(link, direction, id)
  else if (kind === 'reply') table.reply(link, OPPOSITE[direction], id, ok)
  else table.progress(link, OPPOSITE[direction], id)
}

// JSON-RPC 2.0, with the notifications that cancel a request, of MCP and of the Language Server Protocol, and MCP's errors
// of tools in results.

type Message = Readonly<Record<string, unknown>>

const isId = (id: unknown): id is CallId => typeof id === 'string' || typeof id === 'number'
const fieldOf = (params: unknown, name: string): unknown => (params as Message | null | undefined)?.[name]

/** Names in `params` of the id of the request that a notification cancels. */
const CANCELLED = new Map([
  ['notifications/cancelled', 'requestId'],
  ['$/cancelRequest', 'id'],
])

/** Returns what a parsed message of JSON-RPC says of a call; `undefined` for none. */
export function readJsonRpc(value: unknown): CallMessage | undefined {
  if (value === null || typeof value !== 'object') return undefined
  const { method, id, params, result } = value as Message
  if (typeof method !== 'string') {
    const isReply = isId(id) && ('result' in value || 'error' in value)
    return isReply ? { kind: 'reply', id, ok: !('error' in value) && fieldOf(result, 'isError') !== true } : undefined
  }
  if (isId(id)) {
    const tool = method === 'tools/call' ? fieldOf(params, 'name') : undefined
    return { kind: 'request', id, action: typeof tool === 'string' ? `${method} ${tool}` : method }
  }
  const name = CANCELLED.get(method)
  const subject = name && fieldOf(params, name)
  return isId(subject) ? { kind: 'cancel', id: subject } : { kind: 'notification', action: method }
}

/** The beginning of most requests and replies: what follows is not needed. */
const BEGINNING =
  /^\{"jsonrpc":"2\.0",(?:"id":(\d+|"[^"\\]*"),"(?:method":"([^"\\]*)"|(result|error)")|"method":"([^"\\]*)","id":(\d+|"[^"\\]*"))/

/** Reads the beginning of a message, at a fraction of the cost of parsing it; `undefined` if that does not suffice. */
function readBeginning(text: string): CallMessage | undefined {
  const found = BEGINNING.exec(text)
  if (!found) return undefined
  const given = (found[1] ?? found[5]) as string
  // Most ids are digits, which are cheaper to convert than to parse.
  const id: CallId = given.startsWith('"') ? JSON.parse(given) : Number(given)
  const method = found[2] ?? found[4]
  // Of some, the error or the name of the tool comes later.
  const isNamedLater = method === 'tools/call' || (!method && text.includes('"isError":true'))
  if (isNamedLater && text.length < TEXT_MAX) return undefined
  return method === undefined
    ? { kind: 'reply', id, ok: found[3] === 'result' }
    : { kind: 'request', id, action: method }
}

/** JSON-RPC 2.0, in both directions. */
export const jsonRpc: CallProtocol = {
  read(text) {
    const first = text.charCodeAt(0)
    // '{', '[' or white space.
    if (first !== 0x7b && first !== 0x5b && first > 0x20) return undefined
    const known = readBeginning(text)
    if (known || text.length >= TEXT_MAX) return known
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return undefined
    }
    return Array.isArray(value) ? value.flatMap((one) => readJsonRpc(one) ?? []) : readJsonRpc(value)
  },
}
