/** Words of a host's own functions: who a client is, and what becomes of its commands. */
import type { AdminAuth, Command, ConnectInput, Deliver } from 'relayscope'
import type { createActionHandlers } from 'relayscope/cooperative-site'
import type { MemoryFacilities } from 'relayscope/memory'
import type { BrowserIdentity } from 'relayscope/playwright'
import type { Identity as IoIdentity } from 'relayscope/socket.io'
import type { Identity } from 'relayscope/ws'

const ACTIONS = ['sync', 'reload'] as const
const CRAWLER = { user_id: 'ada', client_id: 'crawler', instance_id: 'run-1', client_type: 'browser' } as const
export const crawler: BrowserIdentity = CRAWLER

export function whoIs(user_id: string) {
  return { user_id, client_id: 'c', instance_id: 'i', client_type: 'web', actions: ACTIONS } satisfies Identity
}
export const annotated = (user_id: string): IoIdentity | null => (user_id ? whoIs(user_id) : null)
export const constant: ConnectInput = { ...CRAWLER, actions: ACTIONS }

export const connect = ({ connections }: MemoryFacilities) => connections.connect(whoIs('ada'))

type Execute = ReturnType<typeof createActionHandlers>['execute']
export const deliverTo =
  (execute: Execute): Deliver =>
  async ({ action, payload, command_id }: Command) => {
    await execute({ action, parameters: payload, correlation_id: command_id })
  }

export const auth: AdminAuth<{ name: string; admin: boolean }> = {
  authenticate: (request) => (request.headers.has('x-admin-key') ? { name: 'ada', admin: true } : null),
}
