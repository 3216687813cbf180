/** Which paths are spelled otherwise than in their one way, so that a guard in front may have read another path. */

const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?=\/|$)/i
// Letters, digits, "-", ".", "_", "~": encoding them changes nothing of a path but its look (RFC 3986, 2.3).
const ENCODED_UNRESERVED = /%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)/i

/** Whether `path` has a segment `.` or `..`, in any encoding: URL parsers resolve it, guards that read text do not. */
export const hasDotSegment = (path: string): boolean => DOT_SEGMENT.test(path)

/** Whether `path` has an empty segment before its last one. */
export const hasEmptySegment = (path: string): boolean => path.includes('//')

/** Whether `path` has another spelling than the shortest one. */
export const isRespelled = (path: string): boolean =>
  hasEmptySegment(path) || hasDotSegment(path) || ENCODED_UNRESERVED.test(path)
