/** How the host's own routes read JSON and answer: bounded bodies in, small JSON out, one place for every status. */
import { Refusal } from 'relayscope'

// A document of the workload fits; nothing that hurts a loopback host does.
const BODY_BYTES = 65_536

/** A refusal of this example's wire protocol, in addition to the library's `Refusal`. */
export class WireError extends Error {
  constructor(status, code) {
    super(code)
    this.status = status
    this.code = code
  }
}

const STATUS = {
  stale_instance: 409,
  identity_conflict: 409,
  command_conflict: 409,
  payload_too_large: 413,
  invalid_input: 422,
  invalid_identity: 422,
  capacity_exceeded: 503,
  unavailable: 503,
}

/** `body` as a JSON answer. */
export function json(body, status = 200) {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}

/** What a thrown error answers: its code, never its message. */
export function toAnswer(error) {
  if (error instanceof WireError) return json({ code: error.code }, error.status)
  if (error instanceof URIError) return json({ code: 'invalid_path' }, 400)
  if (error instanceof Refusal && STATUS[error.code]) return json({ code: error.code }, STATUS[error.code])
  console.error('the wire failed:', error)
  return json({ code: 'internal' }, 500)
}

/** The request's JSON object; counted while it is read, because a length header can lie. */
export async function readBody(request) {
  if (request.headers.get('content-type')?.split(';')[0].trim() !== 'application/json')
    throw new WireError(415, 'unsupported_media_type')
  const chunks = []
  let bytes = 0
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength
      if (bytes > BODY_BYTES) throw new WireError(413, 'body_too_large')
      chunks.push(chunk)
    }
  } catch (error) {
    // The client has left, or has been cut off.
    throw error instanceof WireError ? error : new WireError(400, 'body_cut_short')
  }
  let body
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch {
    throw new WireError(400, 'invalid_json')
  }
  if (body === null || typeof body !== 'object' || Array.isArray(body)) throw new WireError(422, 'invalid_body')
  return body
}

/** The bearer credential of a request, or `''`. */
export function bearerOf(request) {
  return /^Bearer ([\w-]{1,128})$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
}
