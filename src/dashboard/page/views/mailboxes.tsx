/** Mailboxes that a connection is attached to: who waits for commands, where, and how many wait for it. */
import type { DeliveryMailbox } from '../../../contract/delivery.js'
import { text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'

export const MAILBOXES: ListView<DeliveryMailbox> = {
  path: '/delivery/mailboxes',
  title: 'Mailboxes',
  about: 'Clients that wait for commands. A client without a mailbox takes none.',
  filters: [text('user_id'), text('client_id'), text('node_id')],
  keyOf: ({ user_id, client_id }) => JSON.stringify([user_id, client_id]),
  columns: ['client_id', 'user_id', 'waiting_commands', 'node_id', 'instance_id', 'attached_at'],
}
