/** The face of `relayscope/testing`: fakes for hosts' unit tests. Imports no test runner. */
export { createFakeInspectors, type World } from './fake-inspectors.js'
