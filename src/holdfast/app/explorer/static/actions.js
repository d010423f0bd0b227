// What can be done with a dependency, where the server lets things be changed.

/** Buttons for a dependency, or null where there are none. */
export function actions(page, dependency) {
  return null;
}
