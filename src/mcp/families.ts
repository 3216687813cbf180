/** The families that an agent may ask for, each with the routes that answer. */

interface AskedFamily {
  /** Its list. A parameter of the path is given as a filter. */
  readonly list: string
  /** One record by its id. */
  readonly one?: string
  /** Where its records hold what clients sent through the relay: it is left out unless the host says otherwise. */
  readonly payload?: string
}

export const FAMILIES = {
  actions: { list: '/actions' },
  browser_windows: { list: '/browser-windows', one: '/browser-windows/{window_id}' },
  calls: { list: '/rpc/pending', one: '/rpc/pending/{correlation_id}' },
  commands: { list: '/delivery/commands' },
  connection_history: { list: '/connections/{connection_id}/history' },
  connections: { list: '/connections', one: '/connections/{connection_id}' },
  contexts: { list: '/contexts', one: '/contexts/{context_id}' },
  idle_workers: { list: '/workers/available' },
  messages: { list: '/history/messages', payload: 'payload' },
  nodes: { list: '/delivery/nodes' },
  sessions: { list: '/sessions', one: '/sessions/{session_id}' },
  sites: { list: '/sites', one: '/sites/{site_id}' },
  streams: { list: '/history/streams' },
  subscriptions: { list: '/subscriptions' },
  task_workers: { list: '/workers/tasks/{task_id}' },
  tenants: { list: '/delivery/tenants' },
  users: { list: '/users' },
} as const satisfies Record<string, AskedFamily>

export type FamilyName = keyof typeof FAMILIES

export const FAMILY_NAMES = Object.keys(FAMILIES) as [FamilyName, ...FamilyName[]]

export const familyOf = (name: FamilyName): AskedFamily => FAMILIES[name]

/** Those of which one record can be asked for by its id. */
export const SINGLE_FAMILIES = FAMILY_NAMES.filter((name) => 'one' in FAMILIES[name]) as [FamilyName, ...FamilyName[]]
