/** How a request target is read: the prefix, the segments, each percent-decoded exactly once. */
import { hasDotSegment, hasEmptySegment } from './spelling.js'

/** A mount prefix in canonical form, and how a path is held against it. */
export interface Prefix {
  /** `''`, or `/a/b` with every segment percent-encoded. */
  path: string
  /** Whether the path begins with the prefix. */
  covers(pathname: string): boolean
  /** Whether a request with this path, undecoded, is this router's to answer: it has one spelling of the prefix. */
  owns(pathname: string): boolean
  /** The decoded segments after the prefix, of a path that is its own. `['']` and `[]` are the index. */
  strip(pathname: string): (string | null)[]
}

/** `segment` percent-decoded, or `null` where it is not well-formed UTF-8 in well-formed percent-encoding. */
export function decodeSegment(segment: string): string | null {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}

/**
 * The prefix that `given` names. One trailing slash is dropped.
 *
 * @throws TypeError for what cannot be a path of whole segments: no leading slash, empty or dot segments, a query, a
 * fragment, malformed percent-encoding, control characters.
 */
export function parsePrefix(given: string): Prefix {
  const trimmed = given.endsWith('/') ? given.slice(0, -1) : given
  const refuse = (why: string): never => {
    throw new TypeError(`prefix ${why}`)
  }
  if (trimmed !== '' && !trimmed.startsWith('/')) refuse('must be empty or start with "/"')
  if (/[?#\\]/.test(trimmed)) refuse('must not contain "?", "#" or "\\"')
  const own = (trimmed === '' ? [] : trimmed.slice(1).split('/')).map((segment) => {
    const decoded = decodeSegment(segment)
    if (decoded === null || !decoded.isWellFormed()) return refuse('is not valid percent-encoding')
    if (decoded === '' || decoded === '.' || decoded === '..') return refuse('must not have empty or dot segments')
    if (/\p{Cc}/u.test(decoded)) return refuse('must not contain control characters')
    return decoded
  })

  const path = own.map((segment) => `/${encodeURIComponent(segment)}`).join('')
  const covers = (pathname: string) =>
    pathname.startsWith(path) && (pathname.length === path.length || pathname[path.length] === '/')
  return {
    path,
    covers,
    owns(pathname) {
      const rest = pathname.slice(path.length)
      return covers(pathname) && !hasEmptySegment(rest) && !hasDotSegment(rest)
    },
    strip: (pathname) =>
      pathname
        .split('/')
        .slice(own.length + 1)
        .map(decodeSegment),
  }
}

/**
 * `prefix.owns` for a router of `routes`, in OpenAPI's form: what would match one of them only once its literals are
 * decoded is not the router's either. A parameter may be encoded in any way.
 */
export function createOwns(prefix: Prefix, routes: readonly string[]): Prefix['owns'] {
  const templates = routes.map((route) => route.split('/').slice(1))
  const at = prefix.path.length + 1
  function hasRespelledLiteral(rest: string): boolean {
    const segments = rest.split('/')
    const decoded = segments.map(decodeSegment)
    const isLiteral = (part: string) => !part.startsWith('{')
    return templates.some(
      (parts) =>
        parts.length === segments.length &&
        parts.every((part, i) => !isLiteral(part) || part === decoded[i]) &&
        parts.some((part, i) => isLiteral(part) && part !== segments[i]),
    )
  }
  return (pathname) => prefix.owns(pathname) && !(pathname.includes('%', at) && hasRespelledLiteral(pathname.slice(at)))
}

/**
 * The path and query of `url`. Nothing else of it is read: an answer must not depend on the host. `undefined` for no
 * URL at all, which a runtime makes of a malformed `Host` where no adapter stands before the router.
 */
export function splitUrl(url: string): { pathname: string; search: string } | undefined {
  try {
    const { pathname, search } = new URL(url)
    return { pathname, search: search.slice(1) }
  } catch {
    return undefined
  }
}
