/*
 * Which deliverables a capture should have, from its recorded configuration
 * (torch_npu.md §1.8), and what is lost without them.
 */
#ifndef NP_CAPTURE_EXPECT_H
#define NP_CAPTURE_EXPECT_H

#include "capture/capture.h"

enum np_presence {
	NP_PRESENT,
	NP_MISSING,       /* the configuration asks for it, and it is not there */
	NP_NOT_COLLECTED, /* the configuration does not ask for it */
	NP_IRRELEVANT,    /* not a deliverable of this kind of capture */
};

/* *why is static: the condition ("Level1 or Level2", "profile_memory=True"). */
enum np_presence np_expect(const struct np_capture *capture, enum np_role role, const char **why);

#endif
