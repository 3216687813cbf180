/** How a request target is read: the prefix, the segments, each percent-decoded exactly once. */

/** A mount prefix in canonical form, and how a path is held against it. */
export interface Prefix {
  /** `''`, or `/a/b` with every segment percent-encoded. */
  path: string
  /** Whether a request with this path is this router's to answer. */
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

  return {
    path: own.map((segment) => `/${encodeURIComponent(segment)}`).join(''),
    owns(pathname) {
      // No more segments than the prefix has: a path of a megabyte must not cost more to refuse than a short one.
      const segments = pathname.split('/', own.length + 1)
      return (
        segments.length > own.length && own.every((segment, i) => decodeSegment(segments[i + 1] as string) === segment)
      )
    },
    strip: (pathname) =>
      pathname
        .split('/')
        .slice(own.length + 1)
        .map(decodeSegment),
  }
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
