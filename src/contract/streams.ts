/** Names of history streams: every id one percent-encoded segment, everything under the user who sent it. */

/** The stream name of these segments below the user. @example userStream('a/b', 'sites', 'x', 'events') */
export function userStream(userId: string, ...segments: string[]): string {
  return ['users', userId, ...segments].map(encodeURIComponent).join('/')
}

/**
 * The canonical name of a stream that `userId` supplied: always a suffix below the user. One that begins `users/` is
 * nested like any other, because a supplied name is never trusted.
 */
export function canonicalStream(userId: string, suffix: string): string {
  return `${userStream(userId)}/${suffix}`
}
