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

/** `stream` where it is the user's own already; any other name is nested below the user. */
export function ownStream(userId: string, stream: string): string {
  // With its slash: the name of one user may begin another's.
  return stream.startsWith(`${userStream(userId)}/`) ? stream : canonicalStream(userId, stream)
}

/** Where the relay records the commands for a client and their results. */
export function commandStream(userId: string, clientId: string): string {
  return userStream(userId, 'clients', clientId, 'commands')
}

const RESERVED = /^users\/[^/]+\/clients\/[^/]+\/commands$/

/** Whether a canonical stream is written by the relay alone: what stands in it is evidence, and no client's word. */
export const isReservedStream = (stream: string): boolean => RESERVED.test(stream)
