/** How a request target is read: its path and query, the prefix, and one segment percent-decoded exactly once. */
import { invalidOption } from '../contract/checks.js'
import { hasDotSegment, hasEmptySegment } from './guard.js'

/** The path and query of a request. */
export interface Target {
  /** Undecoded. */
  pathname: string
  /** Undecoded, without its question mark. */
  search: string
}

/** A mount prefix in canonical form, and how a path is held against it. */
export interface Prefix {
  /** `''`, or `/a/b` with every segment percent-encoded. */
  path: string
  /** Whether the path begins with the prefix. */
  covers(pathname: string): boolean
  /** Whether this router serves the undecoded path: the prefix has exactly one spelling. */
  owns(pathname: string): boolean
}

/** Percent-decodes `segment`; `null` if it is not well-formed UTF-8 in well-formed percent-encoding. */
export function decodeSegment(segment: string): string | null {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}

/** Encodes `segment` as URL parsers do in a path: `+` and `@` stay as they are. */
function encodeSegment(segment: string): string {
  // The slash behind it: a URL loses the spaces at its end.
  return new URL(`http://h/${segment.replace(/[%/?#\\]/g, encodeURIComponent)}/`).pathname.slice(1, -1)
}

/**
 * Parses a prefix into its canonical spelling. One trailing slash is dropped.
 *
 * @throws TypeError for anything but a path of whole segments: no leading slash, empty or dot segments, a query, a
 * fragment, malformed percent-encoding, control characters.
 */
export function parsePrefix(given: string, name = 'prefix'): Prefix {
  const trimmed = given.endsWith('/') ? given.slice(0, -1) : given
  const refuse = (expected: string): never => {
    throw new TypeError(invalidOption(name, expected, given))
  }
  if (trimmed !== '' && !trimmed.startsWith('/')) refuse('an empty string or a path that starts with "/"')
  if (/[?#\\]/.test(trimmed)) refuse('a path without "?", "#" and "\\"')
  const own = (trimmed === '' ? [] : trimmed.slice(1).split('/')).map((segment) => {
    const decoded = decodeSegment(segment)
    if (decoded === null || !decoded.isWellFormed()) return refuse('valid percent-encoding')
    if (decoded === '' || decoded === '.' || decoded === '..') return refuse('a path without empty or dot segments')
    if (/\p{Cc}/u.test(decoded)) return refuse('a path without control characters')
    return decoded
  })

  const path = own.map((segment) => `/${encodeSegment(segment)}`).join('')
  const covers = (pathname: string) =>
    pathname.startsWith(path) && (pathname.length === path.length || pathname[path.length] === '/')
  return {
    path,
    covers,
    owns(pathname) {
      const rest = pathname.slice(path.length)
      return covers(pathname) && !hasEmptySegment(rest) && !hasDotSegment(rest)
    },
  }
}

/** The path and query of a target in origin form, as it was sent. */
export function splitTarget(target: string): Target {
  const at = target.indexOf('?')
  return at < 0 ? { pathname: target, search: '' } : { pathname: target.slice(0, at), search: target.slice(at + 1) }
}

/**
 * Returns the path and query of `url`. The host is not read, because responses must not depend on it. `undefined` for
 * an invalid URL, which some runtimes build from a malformed `Host`.
 */
export function splitUrl(url: string): Target | undefined {
  try {
    const { pathname, search } = new URL(url)
    return { pathname, search: search.slice(1) }
  } catch {
    return undefined
  }
}
