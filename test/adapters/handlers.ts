/** The handlers that every host carries, and both as one for the hosts that take one. */
import type { FetchHandler } from '../../src/adapters/handler.js'
import { diagnostics } from './diagnostics.js'
import { subject } from './subject.js'

export const carried: FetchHandler[] = [diagnostics, subject]

/** A bare handler meets what an adapter would have refused: a URL that does not parse. */
const pathOf = (request: Request): string => (URL.canParse(request.url) ? new URL(request.url).pathname : '')

const answer: FetchHandler = (request, info) =>
  diagnostics.owns(pathOf(request)) ? diagnostics(request) : subject(request, info)

export const both: FetchHandler = Object.assign(answer, {
  owns: (path: string) => carried.some((handler) => handler.owns?.(path)),
})
