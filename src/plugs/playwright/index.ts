/** The face of `relayscope/playwright`: what feeds windows and contexts from a browser. */
export type { Follower, FollowOptions, PlugErrorPlace } from '../follow/options.js'
export { type BrowserFollower, type FollowBrowserOptions, followBrowser } from './follow.js'
export type { FollowedBrowser, FollowedBrowserContext, FollowedPage } from './peer.js'
export type { BrowserIdentity } from './told.js'
