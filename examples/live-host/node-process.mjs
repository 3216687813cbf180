/** Runs a node in its own process, so that it can be killed while the others continue. */
import { startNode } from './node.mjs'

const { NODE_PLAN } = process.env
// It holds the administrator's key and every ticket.
delete process.env.NODE_PLAN

const told = new Promise((resolve) => process.on('SIGTERM', resolve))
// Ctrl-C in a terminal reaches every process of it; clients leave before their nodes do.
process.on('SIGINT', () => {})
// The main process has exited without a message.
process.on('disconnect', () => process.exit(0))

const node = await startNode(JSON.parse(NODE_PLAN))
process.send({ urls: node.urls, guest: node.guest })
await told
await node.close()
process.disconnect()
