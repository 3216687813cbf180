/** The words of filters that several lists have. */
import type { ClientType } from '../../../contract/connections.js'
import type { Ownership } from '../../../contract/contexts.js'

export const CLIENT_TYPES: ClientType[] = ['browser', 'console', 'mobile', 'web']
export const OWNERSHIPS: Ownership[] = ['user-owned', 'worker']
