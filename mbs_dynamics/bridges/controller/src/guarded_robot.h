// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0
/* Tables of the robot ${name}, written by mbs_dynamics. */
#ifndef GUARDED_ROBOT_H
#define GUARDED_ROBOT_H

/* Digest of the description. */
#define GUARDED_DESCRIPTION 0x${digest}ULL
#define GUARDED_COMMANDED ${count}
/* Modes: the sum of 1 floating, 2 joint and 4 cartesian; the link that the mode cartesian moves. */
#define GUARDED_LAWS ${laws}
#define GUARDED_LINK "${link}"

/* Constants of mbs_dynamics. */
#define GUARDED_RATE_SHARE ${rate_share}
#define GUARDED_LARGEST_FRICTION ${largest_friction}
#define GUARDED_LARGEST_TURN ${largest_turn}
#define GUARDED_NEVER ${never}
#define GUARDED_STANDARD_GRAVITY ${standard_gravity}
#define GUARDED_GRAVITY_TOLERANCE ${gravity_tolerance}

/* Limits of a load: each of its numbers; distance of its centre of mass from the link, and of its
 * mass from this centre (root mean square), in m. */
#define GUARDED_LARGEST_LOAD ${largest_load}
#define GUARDED_FARTHEST_LOAD ${farthest_load}
#define GUARDED_WIDEST_LOAD ${widest_load}

/* Places of two checks among guarded_checks. */
#define GUARDED_OVERLOAD ${overload}

/* Places of the joints to command among all joints, and their Coulomb friction in N m or N. */
static const int guarded_places[GUARDED_COMMANDED] = {${places}};
static const double guarded_friction[GUARDED_COMMANDED] = ${friction};

/* Mass of the moving links in kg. */
static const double guarded_mass = ${mass};

/* A link: the body that moves with it, -1 for those that do not move, and its frame in that of the
 * body: rotation matrix by rows, and origin in m. */
typedef struct {
  const char *name;
  int body;
  double R[9];
  double p[3];
} guarded_Link;

static const guarded_Link guarded_links[] = {
${links}
};

/* What a period depends on in a description: element, path, attribute, default, and whether it
 * holds numbers. */
typedef struct {
  const char *element;
  const char *path;
  const char *attribute;
  const char *otherwise;
  int numbers;
} guarded_Described;

static const guarded_Described guarded_described[] = {
${described}
};

#endif
