/** Uses the generated types of the relay and of the control server: it must compile, and sends no request. */
import type { paths as ControlPaths } from '../made/control-server.js'
import type { components, paths as RelayPaths } from '../made/cooperative-site.js'
import type { invokeAction, putSite } from '../made/hey-api/cooperative-site/index.js'

type BodyOf<Operation> = Operation extends { requestBody: { content: { 'application/json': infer Body } } }
  ? Body
  : never

export const message: BodyOf<RelayPaths['/messages']['post']> = {
  message_id: 'm-1',
  kind: 'event',
  stream: 'sites/notes/events',
  client_id: 'laptop',
  instance_id: 'laptop-1',
  payload: { name: 'note_changed' },
}

export const site: BodyOf<ControlPaths['/sites/{site_id}']['put']> = {
  mode: 'cooperative',
  action_names: ['archive_note'],
}

// @ts-expect-error: a site is cooperative or observes
export const unknown: BodyOf<RelayPaths['/sites/{site_id}']['put']> = { mode: 'open' }

export type Invoked = [Parameters<typeof invokeAction>[0]['path']['action_name'], Parameters<typeof putSite>[0]['body']]
export const frame: components['schemas']['GapFrame']['reason'] = 'overflow'
