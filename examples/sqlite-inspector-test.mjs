/** Checks the inspector of a table against its contract. `node --test examples/sqlite-inspector-test.mjs` (Node 22.13) */

// #region contract
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { contextRegistryContract } from 'relayscope/testing'
import { inspectTabs } from './sqlite-inspector.mjs'

const db = new DatabaseSync(':memory:')
db.exec('CREATE TABLE tabs (id TEXT UNIQUE, user TEXT, status TEXT)')
db.exec("INSERT INTO tabs VALUES ('t-1', 'ada', 'active'), ('t-2', 'bob', 'idle'), ('t-3', 'ada', 'stale')")

for (const { name, run } of contextRegistryContract(() => inspectTabs(db))) test(name, run)
// #endregion
