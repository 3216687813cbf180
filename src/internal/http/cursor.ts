/** Cursors on the wire: an inspector's token, bound to the list that it came from. */
import { digest64 } from '../contract/digest.js'
import { utf8Length } from '../contract/ids.js'
import { CURSOR_BYTES, TOKEN_BYTES } from '../contract/limits.js'
import { ProblemError } from './problem.js'

const VERSION = '1'

/**
 * Identifies a list for its cursors: same text, same list. `limit` is not part of it, so a caller may change it while
 * paging.
 */
export function listIdentity(parts: {
  route: string
  params: Record<string, string>
  filters: Record<string, unknown>
  /** Absent for a list that has one order. */
  order?: string | undefined
  deployment: { id: string | null; mode: string }
  /** The visible users, if restricted. */
  users?: readonly string[] | undefined
}): string {
  const sorted = (record: Record<string, unknown>) =>
    Object.keys(record)
      .sort()
      .map((key) => [key, record[key]])
  const { route, params, filters, order, deployment, users } = parts
  const list = [VERSION, route, sorted(params), sorted(filters), deployment.id, deployment.mode, order]
  return JSON.stringify(users === undefined ? list : [...list, users])
}

function toBase64url(text: string): string {
  const binary = String.fromCharCode(...new TextEncoder().encode(text))
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function fromBase64url(text: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)))
  } catch {
    return undefined
  }
}

/**
 * The cursor for `token` of the list `identity`. It detects change and is not authentication: each inspector checks
 * its own token.
 *
 * @throws TypeError for a token over 360 bytes, which is a fault of the inspector.
 */
export function toCursor(identity: string, token: string): string {
  const bytes = utf8Length(token)
  if (bytes > TOKEN_BYTES) throw new TypeError(`next_cursor: ${bytes} bytes, at most ${TOKEN_BYTES}`)
  if (!token.isWellFormed()) throw new TypeError('next_cursor: must be well-formed Unicode')
  return toBase64url(`${VERSION}${digest64(identity + token)}${token}`)
}

/**
 * The token inside `cursor`.
 *
 * @throws ProblemError `invalid_cursor` unless this very text is the cursor of a token of this very list.
 */
export function fromCursor(identity: string, cursor: string): string {
  const text = cursor.length <= CURSOR_BYTES ? fromBase64url(cursor) : undefined
  const token = text?.slice(VERSION.length + 16)
  // Re-encoded and compared, so that base64's spare bits and other spellings are not second cursors.
  if (token === undefined || utf8Length(token) > TOKEN_BYTES || toCursor(identity, token) !== cursor)
    throw new ProblemError('invalid_cursor')
  return token
}
