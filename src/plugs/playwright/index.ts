/** The face of `relayscope/playwright`: what feeds windows and contexts from a browser. */
export type { Follower, FollowOptions, PlugErrorPlace } from '../follow/writer.js'
export {
  type BrowserFollower,
  type BrowserIdentity,
  type FollowBrowserOptions,
  type FollowedBrowser,
  type FollowedBrowserContext,
  type FollowedPage,
  followBrowser,
} from './follow.js'
