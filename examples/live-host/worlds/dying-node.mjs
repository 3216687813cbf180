/** A node of the world `broken` that holds two clients when it is killed. */
import { clientOf, openNode } from './broken-node.mjs'

const { facilities } = await openNode(process.env.REDIS_URL, 'node-b')
for (const client_id of ['tablet', 'phone']) {
  const client = clientOf('margaret', client_id, 'mobile')
  await facilities.connections.connect(client)
  // A delivery that does not end.
  await facilities.dispatcher.attach(client, () => new Promise(() => {}))
  await facilities.dispatcher.dispatch({
    user_id: client.user_id,
    client_id,
    command_id: `sync-${client_id}`,
    action: 'sync',
  })
}
// Once the node has reported what it holds.
setTimeout(() => process.send('ready'), 1_500)
